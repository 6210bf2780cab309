//! A client's way into the cluster of processes: the client crate as it is.

use std::future::Future;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use holdfast_client::{CallError, Client, Decided, Done, ErrorReason, Failure, ReservationId};

use holdfast_ledger::Command;

use crate::codes;
use crate::convert::command_of;
use crate::drive::{Door, Ended};
use crate::history::{Answered, Call, Outcome, ReceiptFacts, RefusalFacts};

/// A client of a running cluster.
#[derive(Clone)]
pub struct ClusterDoor {
    /// The client.
    pub client: Client,
    /// When the run began.
    pub began: Instant,
    /// Who publishes.
    pub actor: String,
}

impl ClusterDoor {
    async fn ask(&self, id: &str, call: &Call) -> Result<(u64, Answered), CallError> {
        let invalid = |problem: String| CallError::Invalid(Failure::new(ErrorReason::Invalid, problem));
        match call {
            Call::Get => {
                let id: ReservationId =
                    id.parse().map_err(|error: holdfast_ledger::ids::IdError| invalid(error.to_string()))?;
                self.client.get(id).await.map(answered)
            }
            Call::Publish { document } => {
                let published = self.client.publish_plan(document, None, false, &self.actor).await?;
                let (generation, changed) = (published.generation, published.changed);
                Ok((published.revision, Answered::Published { generation, changed }))
            }
            Call::Resolve { .. } | Call::Freeze { .. } | Call::Unfreeze { .. } => {
                match command_of(id, call, 1).map_err(|error| invalid(error.to_string()))? {
                    Some(Command::ResolveUnknown(resolve)) => {
                        self.client.resolve_unknown(&resolve).await.map(answered)
                    }
                    Some(Command::Freeze(freeze)) => {
                        let done = self.client.freeze(&freeze).await?;
                        Ok((done.revision, Answered::Frozen { changed: done.changed }))
                    }
                    Some(Command::Unfreeze(unfreeze)) => {
                        let done = self.client.unfreeze(&unfreeze).await?;
                        Ok((done.revision, Answered::Unfrozen { changed: done.changed }))
                    }
                    _ => Err(invalid("is no operator's command".into())),
                }
            }
            _ => match command_of(id, call, 1).map_err(|error| invalid(error.to_string()))? {
                Some(command) => self.client.submit(command).await.map(answered),
                None => Err(invalid("is not a command".into())),
            },
        }
    }
}

fn answered(decided: Decided) -> (u64, Answered) {
    let answered = match decided.done {
        Done::Receipt(receipt) => Answered::Receipt(Box::new(ReceiptFacts::of(&receipt))),
        Done::Tombstone(_) => Answered::Tombstone,
    };
    (decided.revision, answered)
}

impl Door for ClusterDoor {
    async fn call(&mut self, id: &str, call: &Call) -> Ended {
        match self.ask(id, call).await {
            Ok((revision, answered)) => {
                Ended { outcome: Outcome::Ok, code: None, revision: Some(revision), answered: Some(answered) }
            }
            Err(CallError::Rejected(failure) | CallError::Invalid(failure)) => Ended {
                outcome: Outcome::Rejected,
                code: Some(failure.reason.to_string()),
                revision: failure.facts.revision,
                answered: Some(Answered::Refused(RefusalFacts::from(&failure))),
            },
            Err(CallError::Unavailable(failure)) => Ended {
                outcome: Outcome::Unavailable,
                code: Some(failure.reason.to_string()),
                revision: None,
                answered: None,
            },
            Err(CallError::Unknown(_)) => Ended {
                outcome: Outcome::Unknown,
                code: Some(codes::LOST.to_owned()),
                revision: None,
                answered: None,
            },
        }
    }

    fn pause(&mut self) -> impl Future<Output = ()> {
        tokio::time::sleep(Duration::from_millis(10))
    }

    fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    fn wall_ms(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    }
}
