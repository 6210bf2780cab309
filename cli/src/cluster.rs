//! Calls on the cluster that are not part of a reservation's life: any endpoint will do, the leader is found.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use holdfast_proto::{ErrorReason, Failure as Answered, v1};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};

use crate::failure::{Failure, Kind, Outcome};
use crate::settings::Settings;

/// Pause before all endpoints are tried again, while there is no leader.
const ELECTION_PAUSE: Duration = Duration::from_millis(100);
/// Largest answer that is read: a plan document of the largest size, or a long history, with room.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// What a call does, which decides what a lost answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing: a lost answer is just no answer.
    Reads,
    /// It changes something: a lost answer leaves the outcome unknown.
    Writes,
}

/// Where the cluster is and how long a call may take.
#[derive(Clone, Debug)]
pub struct Cluster {
    endpoints: Vec<String>,
    deadline: Duration,
}

/// One call to one member: the channel, and a request with the time that is left.
pub struct Call {
    /// The member.
    pub channel: Channel,
    left: Duration,
}

impl Call {
    /// A request that carries its deadline.
    pub fn request<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        request.set_timeout(self.left);
        request
    }
}

impl Cluster {
    /// The cluster that the settings name.
    pub fn of(settings: &Settings) -> Outcome<Cluster> {
        Ok(Cluster { endpoints: settings.endpoints()?, deadline: settings.deadline })
    }

    /// A cluster by its addresses.
    pub fn at(endpoints: Vec<String>, deadline: Duration) -> Cluster {
        Cluster { endpoints, deadline }
    }

    /// Calls members in turn, going where NOT_LEADER points, until one answers or the time is up.
    pub async fn ask<T>(
        &self,
        what: &str,
        effect: Effect,
        call: impl AsyncFn(Call) -> Result<Response<T>, Status>,
    ) -> Outcome<T> {
        let until = Instant::now() + self.deadline;
        let mut queue: VecDeque<String> = self.endpoints.iter().cloned().collect();
        let mut untried = self.endpoints.len();
        let mut last = None;
        while let Some(endpoint) = queue.pop_front() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let status = match self.ask_one(&endpoint, left, &call).await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            match next_step(&status, effect) {
                Next::GoTo(leader) => {
                    queue.push_back(endpoint);
                    queue.retain(|other| *other != leader);
                    queue.push_front(leader);
                }
                Next::TryAnother => queue.push_back(endpoint),
                Next::GiveUp => return Err(describe(what, effect, &endpoint, &status)),
            }
            let failure = describe(what, effect, queue.back().map_or("", String::as_str), &status);
            last = Some(failure);
            untried = untried.saturating_sub(1);
            if untried == 0 {
                untried = queue.len();
                tokio::time::sleep(ELECTION_PAUSE.min(until.saturating_duration_since(Instant::now()))).await;
            }
        }
        Err(last
            .unwrap_or_else(|| Failure::new(Kind::Unavailable, format!("{what}: the time was up at once"))))
    }

    /// Calls exactly this member.
    pub async fn ask_member<T>(
        &self,
        what: &str,
        endpoint: &str,
        call: impl AsyncFn(Call) -> Result<Response<T>, Status>,
    ) -> Outcome<T> {
        let endpoint =
            if endpoint.contains("://") { endpoint.to_owned() } else { format!("http://{endpoint}") };
        match self.ask_one(&endpoint, self.deadline, &call).await {
            Ok(answer) => Ok(answer),
            Err(status) => Err(describe(what, Effect::Reads, &endpoint, &status)),
        }
    }

    async fn ask_one<T>(
        &self,
        endpoint: &str,
        left: Duration,
        call: &impl AsyncFn(Call) -> Result<Response<T>, Status>,
    ) -> Result<T, Status> {
        let not_reached =
            |problem: String| Status::new(Code::Unavailable, format!("cannot be reached: {problem}"));
        let target = Endpoint::from_shared(endpoint.to_owned()).map_err(|e| not_reached(e.to_string()))?;
        let target = target.connect_timeout(left);
        let channel = target.connect().await.map_err(|e| not_reached(root_cause(&e)))?;
        let answer = tokio::time::timeout(left, call(Call { channel, left })).await;
        Ok(answer.map_err(|_| Status::new(Code::DeadlineExceeded, "no answer in time"))??.into_inner())
    }

    /// The members, as any reachable one tells.
    pub async fn members(&self) -> Outcome<v1::ListMembersResponse> {
        self.ask("members", Effect::Reads, async |call| {
            let request = call.request(v1::ListMembersRequest {});
            v1::members_client::MembersClient::new(call.channel).list(request).await
        })
        .await
    }
}

/// The most a client of ours reads in one answer.
pub fn answer_bytes_max() -> usize {
    ANSWER_BYTES_MAX
}

enum Next {
    GoTo(String),
    TryAnother,
    GiveUp,
}

/// What may be tried after this failure. A write goes on only where it certainly was not done.
fn next_step(status: &Status, effect: Effect) -> Next {
    let Some(answered) = Answered::from_status(status) else {
        let nobody_there = status.message().starts_with("cannot be reached");
        let harmless = effect == Effect::Reads || nobody_there;
        return if status.code() == Code::Unavailable && harmless { Next::TryAnother } else { Next::GiveUp };
    };
    if answered.reason == ErrorReason::NotLeader
        && let Some(leader) = &answered.facts.leader
    {
        return Next::GoTo(format!("http://{}", leader.address));
    }
    let harmless = effect == Effect::Reads || answered.reason.has_no_side_effects();
    if answered.reason.is_retryable() && harmless { Next::TryAnother } else { Next::GiveUp }
}

/// A failure for people, with the exit code that belongs to it.
fn describe(what: &str, effect: Effect, endpoint: &str, status: &Status) -> Failure {
    match Answered::from_status(status) {
        Some(answered) => of_answer(what, effect, &answered),
        None => of_foreign(what, effect, endpoint, status),
    }
}

/// What the cluster said, in words and with the exit code that belongs to it.
pub fn of_answer(what: &str, effect: Effect, answered: &Answered) -> Failure {
    let kind = kind_of(answered.reason, effect);
    let failure = Failure::new(kind, format!("{what}: {} ({})", answered.message, answered.reason));
    match advice(answered, kind) {
        Some(advice) => failure.advise(advice),
        None => failure,
    }
}

fn kind_of(reason: ErrorReason, effect: Effect) -> Kind {
    use ErrorReason::*;
    match reason {
        Invalid => Kind::Usage,
        NotFound | WrongIdentity | Unsupported => Kind::Failed,
        Unauthenticated | Denied | RejectedFrozen | RejectedNeverFits | RejectedDebt | RejectedHeld
        | RejectedSpent | Conflict | WrongState | IdTooOld | IdInFuture | GenerationMismatch => Kind::Refused,
        Overloaded | NotLeader | NoLeader | NoQuorum | ClockOutOfBounds | ShuttingDown | DroppedLate
        | Unreachable => Kind::Unavailable,
        TimedOut | OutcomeUnknown | NodeFailed if effect == Effect::Writes => Kind::Unknown,
        TimedOut | OutcomeUnknown | NodeFailed => Kind::Unavailable,
    }
}

fn advice(answered: &Answered, kind: Kind) -> Option<String> {
    match (answered.facts.retry_after_ms, kind) {
        (Some(ms), _) => Some(format!("Try again in {}.", crate::show::hours_minutes(ms))),
        (None, Kind::Unavailable) => Some("Nothing was done; try again, or ask `holdfast status`.".into()),
        (None, Kind::Unknown) => {
            Some("It may have been done: ask by the same id before you do it again.".into())
        }
        (None, _) => match answered.reason {
            ErrorReason::RejectedNeverFits => Some("Waiting does not help: ask for less.".into()),
            ErrorReason::RejectedFrozen => Some("Waiting does not help: an operator lifts a freeze.".into()),
            ErrorReason::GenerationMismatch => {
                Some("Look at what is in force (`holdfast plan diff FILE`) and apply again.".into())
            }
            ErrorReason::Conflict => Some("Use a new id for a new request.".into()),
            _ => None,
        },
    }
}

/// Not our own words: a network error, a proxy, a gRPC library.
fn of_foreign(what: &str, effect: Effect, endpoint: &str, status: &Status) -> Failure {
    let endpoint = endpoint.trim_start_matches("http://");
    let problem = format!("{what}: {endpoint} {}", status.message());
    let unreached = status.message().starts_with("cannot be reached");
    match (effect, status.code()) {
        (_, Code::Unavailable) if unreached => Failure::new(Kind::Unavailable, problem)
            .advise("Nothing was done. Is the node running, and is --endpoints right?"),
        (Effect::Writes, _) => {
            Failure::new(Kind::Unknown, problem).advise("It may have been done: look before you do it again.")
        }
        (Effect::Reads, Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled) => {
            Failure::new(Kind::Unavailable, problem)
        }
        (Effect::Reads, code) => Failure::failed(format!("{problem} ({code:?})")),
    }
}

/// The innermost cause: "Connection refused" says more than "transport error".
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reason: ErrorReason, effect: Effect) -> u8 {
        of_answer("x", effect, &Answered::new(reason, "y")).kind.code()
    }

    #[test]
    fn exit_codes_follow_the_table() {
        assert_eq!(of(ErrorReason::Invalid, Effect::Writes), 2);
        assert_eq!(of(ErrorReason::RejectedSpent, Effect::Writes), 3);
        assert_eq!(of(ErrorReason::GenerationMismatch, Effect::Writes), 3);
        assert_eq!(of(ErrorReason::NoLeader, Effect::Writes), 4);
        assert_eq!(of(ErrorReason::TimedOut, Effect::Writes), 5);
        assert_eq!(of(ErrorReason::TimedOut, Effect::Reads), 4);
        assert_eq!(of(ErrorReason::NotFound, Effect::Reads), 1);
    }

    #[test]
    fn unknown_is_never_called_unavailable() {
        for reason in ErrorReason::ALL {
            if !reason.has_no_side_effects() {
                assert_eq!(of(*reason, Effect::Writes), 5, "{reason}");
            }
        }
        let foreign = Status::new(Code::Unavailable, "transport error");
        assert_eq!(describe("x", Effect::Writes, "a:1", &foreign).kind, Kind::Unknown);
        assert!(matches!(next_step(&foreign, Effect::Writes), Next::GiveUp));
        assert!(matches!(next_step(&foreign, Effect::Reads), Next::TryAnother));
    }
}
