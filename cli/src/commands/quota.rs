//! `holdfast quota`: what a tenant or a user has used and has left.

use holdfast_proto::v1;

use crate::cluster::{Cluster, Effect};
use crate::failure::Outcome;
use crate::settings::Settings;
use crate::show::{quota_document, quota_text};

/// Options of `quota`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The tenant
    tenant: String,
    /// One of its users: adds the limits of the user level
    #[arg(long)]
    user: Option<String>,
    /// Answer from what the asked member has applied, which may be behind
    #[arg(long)]
    stale: bool,
}

/// Asks and shows.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let cluster = Cluster::of(settings)?;
    let quota = cluster
        .ask(&format!("quota of {}", args.tenant), Effect::Reads, async |call| {
            let request = v1::GetQuotaRequest {
                tenant: args.tenant.clone(),
                user: args.user.clone(),
                stale: args.stale,
            };
            let request = call.request(request);
            v1::quotas_client::QuotasClient::new(call.channel).get_quota(request).await
        })
        .await?;
    let document = quota_document(&args.tenant, args.user.as_deref(), &quota);
    settings.output.show(&document, || quota_text(&quota))
}
