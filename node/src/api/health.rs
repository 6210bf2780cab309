//! `grpc.health.v1`: serving only while the node can serve.

use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

/// The services whose health is told, besides the whole server's under the empty name.
const SERVICES: [&str; 6] = [
    "holdfast.v1.Ledger",
    "holdfast.v1.Quotas",
    "holdfast.v1.Plans",
    "holdfast.v1.Operations",
    "holdfast.v1.Members",
    "holdfast.v1.History",
];

/// Tells everybody who asks or watches whether this node can serve.
pub(crate) struct HealthTeller {
    reporter: HealthReporter,
}

impl HealthTeller {
    pub(super) fn new(reporter: HealthReporter) -> Self {
        HealthTeller { reporter }
    }

    /// The state from now on.
    pub(crate) async fn tell(&self, can_serve: bool) {
        let status = if can_serve { ServingStatus::Serving } else { ServingStatus::NotServing };
        for service in SERVICES.into_iter().chain([""]) {
            self.reporter.set_service_status(service, status).await;
        }
    }
}
