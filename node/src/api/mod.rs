//! What clients meet on the client port: the gRPC services of `holdfast.v1`, health and reflection.
//!
//! # Architecture invariants
//!
//! - A request is checked before anything is proposed; every failure has a reason of the table of errors.
//! - The digest of a canonical request is computed here, where it enters the cluster, and nowhere else.
//! - A deadline that passes drops a command before it is proposed and never after.
//! - Nothing here decides about capacity: the book does.

mod batch;
mod connections;
mod deadline;
mod events;
mod failures;
mod fields;
mod guard;
mod health;
mod history;
mod ledger;
mod members;
mod operations;
mod plans;
mod quotas;
mod reads;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use holdfast_ledger::{Answer, Command};
use holdfast_proto::answers::DigestAt;
use holdfast_proto::{ErrorReason, FILE_DESCRIPTOR_SET, Failure, v1};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tonic::service::Routes;
use tonic::{Response, Status};

use crate::config::QueueBounds;
use crate::events::EventEar;
use crate::limits::STREAM_COMMANDS_PER_QUEUED;
use crate::metrics::{Kind, Metrics};
use crate::propose::Decision;
use crate::replica::Replica;
use crate::storage::history::HistoryReader;
use crate::webhooks::Deliveries;

pub(crate) use connections::{Connection, ConnectionBounds, Connections, Place};
pub(crate) use deadline::on_raft;
pub(crate) use health::HealthTeller;

/// The node on its own runtime, as the services call it.
pub(crate) type Node = crate::raft::host::TokioNode;

/// What every service needs.
pub(crate) struct Context {
    pub(crate) node: Node,
    pub(crate) node_id: u64,
    pub(crate) cluster_id: String,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) bounds: Bounds,
    /// What has ended, if this node keeps it.
    pub(crate) history: Option<HistoryReader>,
    /// Where new events are heard of.
    pub(crate) events: EventEar,
    /// Places of those who follow events.
    pub(crate) event_streams: Arc<Semaphore>,
    /// What the sender of webhooks tells.
    pub(crate) deliveries: Arc<Deliveries>,
    /// True once nothing new is taken.
    pub(crate) stop: watch::Receiver<bool>,
}

/// The bounds of client calls.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) deadline: Duration,
    pub(crate) stream_commands_max: usize,
    pub(crate) message_bytes_max: usize,
    pub(crate) connections: ConnectionBounds,
}

impl From<&QueueBounds> for Bounds {
    fn from(queue: &QueueBounds) -> Self {
        let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Bounds {
            deadline: Duration::from_millis(queue.deadline_ms),
            stream_commands_max: size(queue.stream_commands_max),
            message_bytes_max: size(queue.message_bytes_max),
            connections: ConnectionBounds {
                connections_max: size(queue.connections_max),
                connection_commands_max: size(queue.connection_commands_max),
                commands_max: size(queue.commands_max.saturating_mul(STREAM_COMMANDS_PER_QUEUED)),
            },
        }
    }
}

impl Context {
    fn replica(&self) -> &Replica {
        self.node.replica()
    }

    fn now_ms(&self) -> u64 {
        self.node.now_ms()
    }

    /// The book's digest as it is here now.
    fn digest(&self) -> DigestAt {
        self.replica().read(|book| DigestAt { revision: book.revision(), digest: book.digest() })
    }

    /// Proposes one command and waits for its answer and the revision it was decided at. A refusal that makes no
    /// log entry is a failure at once.
    async fn propose_one(&self, command: Command, at: Instant) -> Result<(Answer, u64), Failure> {
        let kind = Kind::of(&command);
        let began = Instant::now();
        let Decision { refused, proposed } = self.node.decide(&[command], deadline::on_raft(at)).await;
        if let Some((_, refused)) = refused.into_iter().next() {
            let answer = Answer::Refused(refused.refusal.clone());
            self.metrics.count_answer(kind, &answer);
            return Err(failures::of_refused(&refused));
        }
        let outcome = proposed.ok_or_else(failures::lost_answer).and_then(|proposed| {
            let answered = proposed.map_err(failures::of_propose)?;
            let answer = answered.answers.into_iter().next();
            answer.map(|answer| (answer, answered.first_revision)).ok_or_else(failures::lost_answer)
        });
        match &outcome {
            Ok((answer, _)) => {
                self.metrics.answer_seconds.observe(began.elapsed().as_secs_f64());
                self.metrics.count_answer(kind, answer);
            }
            Err(failure) => self.metrics.count_failed(kind, failure.reason),
        }
        outcome
    }

    /// A failed call as its status.
    fn status(&self, failure: Failure) -> Status {
        failure.to_status()
    }

    /// The end of a call. Failures of the book are counted with its commands, all others here.
    fn answer<T>(&self, outcome: Result<T, Failure>) -> Result<Response<T>, Status> {
        outcome.map(Response::new).map_err(|failure| {
            if failure.reason == ErrorReason::Invalid {
                self.metrics.count_failure(failure.reason);
            }
            self.status(failure)
        })
    }
}

/// The services, ready to be put on the client port, and the way to tell their health.
///
/// # Errors
/// The descriptors for reflection cannot be read: a fault of the build.
pub(crate) fn routes(cx: &Arc<Context>) -> Result<(Routes, HealthTeller), tonic_reflection::server::Error> {
    let (reporter, health) = tonic_health::server::health_reporter();
    let bytes = cx.bounds.message_bytes_max;
    macro_rules! limited {
        ($server:expr) => {
            guard::Guarded::of($server.max_decoding_message_size(bytes), bytes)
        };
    }
    let ledger = v1::ledger_server::LedgerServer::new(ledger::LedgerService { cx: Arc::clone(cx) });
    let quotas = v1::quotas_server::QuotasServer::new(quotas::QuotasService { cx: Arc::clone(cx) });
    let plans = v1::plans_server::PlansServer::new(plans::PlansService { cx: Arc::clone(cx) });
    let operations =
        v1::operations_server::OperationsServer::new(operations::OperationsService { cx: Arc::clone(cx) });
    let members = v1::members_server::MembersServer::new(members::MembersService { cx: Arc::clone(cx) });
    let history = v1::history_server::HistoryServer::new(history::HistoryService { cx: Arc::clone(cx) });
    let mut routes = Routes::builder();
    routes
        .add_service(limited!(ledger))
        .add_service(limited!(quotas))
        .add_service(limited!(plans))
        .add_service(limited!(operations))
        .add_service(limited!(members))
        .add_service(limited!(history))
        .add_service(health)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?);
    Ok((routes.routes(), HealthTeller::new(reporter)))
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}
