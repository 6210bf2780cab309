//! The batched stream: many commands a message, answers batched likewise.
//!
//! One state machine per stream, driven by the connection that reads the answers: no task per command, none
//! per message, and a client that does not read its answers is not read from either. Each message becomes
//! one proposal (or a few, where deadlines differ much), so the answers of a message go back together, and
//! so do those of all messages that one log entry answered.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, Stream, StreamExt, unfold};
use holdfast_ledger::{Answer, Command};
use holdfast_proto::answers::{DigestAt, encode_answer, encode_batched_answer};
use holdfast_proto::commands::decode_batched;
use holdfast_proto::limits::BATCH_COMMANDS_MAX;
use holdfast_proto::{Failure, FieldError, v1};
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::{Status, Streaming};

use super::connections::{Connection, Ticket};
use super::{Context, deadline, failures};
use crate::limits::DEADLINE_GROUP_FRACTION;
use crate::metrics::Kind;
use crate::propose::{Answered, Decision, ProposeError, Refused};

/// Where the answer to one command goes.
struct Slot {
    correlation: u64,
    kind: Kind,
    want_digest: bool,
}

/// Commands that are proposed together.
struct Group {
    deadline: Instant,
    /// The book is looked at first: it may refuse them as it is.
    suspect: bool,
    commands: Vec<Command>,
    slots: Vec<Slot>,
}

/// A group that takes part.
struct Admitted {
    group: Group,
    ticket: Ticket,
}

/// A group that was answered, or was not.
struct Outcome {
    slots: Vec<Slot>,
    /// Given back once the answers are on their way.
    _ticket: Ticket,
    began: Instant,
    /// Refused without a log entry, with where the answers go.
    refused: Vec<(Slot, Refused)>,
    /// What became of the commands of the slots; `None`: there were none left.
    answered: Option<Result<Answered, ProposeError>>,
}

struct Batch {
    cx: Arc<Context>,
    connection: Connection,
    /// `None` once the client has said all, or nothing more is taken.
    incoming: Option<Streaming<v1::BatchRequest>>,
    stop: watch::Receiver<bool>,
    under_way: FuturesUnordered<BoxFuture<'static, Outcome>>,
    unanswered: usize,
    deadline: Option<Instant>,
    /// How the stream ends, once everything is answered.
    end: Option<Status>,
}

enum Step {
    Message(Result<Option<v1::BatchRequest>, Status>),
    Answered(Outcome),
    Stopping,
    Ended,
}

/// The answers to what comes in, until both are through.
pub(super) fn answers(
    cx: Arc<Context>,
    connection: Connection,
    incoming: Streaming<v1::BatchRequest>,
    deadline: Option<Instant>,
) -> impl Stream<Item = Result<v1::BatchResponse, Status>> + Send + 'static {
    let open = Open::new(&cx);
    let batch = Batch {
        stop: cx.stop.clone(),
        cx,
        connection,
        incoming: Some(incoming),
        under_way: FuturesUnordered::new(),
        unanswered: 0,
        deadline,
        end: None,
    };
    unfold((batch, open), |(mut batch, open)| async move {
        let response = batch.next().await?;
        Some((response, (batch, open)))
    })
}

impl Batch {
    async fn next(&mut self) -> Option<Result<v1::BatchResponse, Status>> {
        loop {
            match self.step().await {
                Step::Message(Ok(Some(request))) => {
                    let refused = self.take_in(request);
                    if !refused.is_empty() {
                        return Some(Ok(v1::BatchResponse { answers: refused }));
                    }
                }
                Step::Message(Ok(None)) => self.incoming = None,
                Step::Message(Err(status)) => {
                    self.incoming = None;
                    let known = failures::of_unreadable(&status, self.cx.bounds.message_bytes_max);
                    self.end = known.map(|failure| self.cx.status(failure));
                }
                Step::Stopping => {
                    self.incoming = None;
                    self.end = Some(self.cx.status(failures::shutting_down()));
                }
                Step::Answered(outcome) => return Some(Ok(self.respond(outcome))),
                Step::Ended => return self.end.take().map(Err),
            }
        }
    }

    async fn step(&mut self) -> Step {
        let room = self.unanswered < self.cx.bounds.stream_commands_max;
        let Some(incoming) = &mut self.incoming else {
            return self.under_way.next().await.map_or(Step::Ended, Step::Answered);
        };
        tokio::select! {
            biased;
            Some(outcome) = self.under_way.next() => Step::Answered(outcome),
            message = incoming.message(), if room => Step::Message(message),
            _ = self.stop.wait_for(|stop| *stop) => Step::Stopping,
        }
    }

    /// Decodes a message and begins its commands; gives the answers to those that are refused at once.
    fn take_in(&mut self, request: v1::BatchRequest) -> Vec<v1::BatchAnswer> {
        let now = Instant::now();
        let mut refused = Vec::new();
        let mut groups: Vec<Group> = Vec::new();
        let too_many = request.commands.len() > BATCH_COMMANDS_MAX;
        for wire in &request.commands {
            let decoded = match too_many {
                true => Err(too_many_commands(request.commands.len())),
                false => decode_batched(wire),
            };
            match decoded {
                Ok(command) => {
                    let cx = &self.cx.bounds;
                    let at = deadline::of_command(now, wire.deadline_ms, cx.deadline, self.deadline);
                    group_for(&mut groups, now, at).add(wire, command);
                }
                Err(error) => {
                    let failure = Failure::from(error);
                    self.cx.metrics.count_failure(failure.reason);
                    refused.push(encode_batched_answer(wire.correlation, Err(failure)));
                }
            }
        }
        for group in groups.into_iter().flat_map(|group| group.split(&self.cx)) {
            match self.connection.take(group.slots.len()) {
                Ok(ticket) => {
                    self.unanswered += group.slots.len();
                    let admitted = Admitted { group, ticket };
                    self.under_way.push(propose(Arc::clone(&self.cx), admitted, now).boxed());
                }
                Err(ceiling) => self.refuse(group.slots, &Failure::overloaded(ceiling), &mut refused),
            }
        }
        refused
    }

    /// The answers of `first`, and of everything else that has been answered by now.
    fn respond(&mut self, first: Outcome) -> v1::BatchResponse {
        let mut answers = Vec::with_capacity(first.slots.len());
        self.encode(first, &mut answers);
        while answers.len() < BATCH_COMMANDS_MAX
            && let Some(Some(outcome)) = self.under_way.next().now_or_never()
        {
            self.encode(outcome, &mut answers);
        }
        v1::BatchResponse { answers }
    }

    fn encode(&mut self, outcome: Outcome, answers: &mut Vec<v1::BatchAnswer>) {
        let Outcome { slots, began, refused, answered, _ticket } = outcome;
        self.unanswered -= slots.len() + refused.len();
        let metrics = &self.cx.metrics;
        for (slot, refused) in refused {
            metrics.count_answer(slot.kind, &Answer::Refused(refused.refusal.clone()));
            answers.push(encode_batched_answer(slot.correlation, Err(failures::of_refused(&refused))));
        }
        match answered {
            None => {}
            Some(Ok(Answered { first_revision, answers: decided, .. })) => {
                metrics.answer_seconds.observe(began.elapsed().as_secs_f64());
                let digest = slots.iter().any(|slot| slot.want_digest).then(|| self.cx.digest());
                for ((slot, answer), revision) in slots.into_iter().zip(&decided).zip(first_revision..) {
                    metrics.count_answer(slot.kind, answer);
                    let digest: Option<DigestAt> = digest.filter(|_| slot.want_digest);
                    let outcome = encode_answer(answer, revision, digest);
                    answers.push(encode_batched_answer(slot.correlation, outcome));
                }
            }
            Some(Err(error)) => self.refuse(slots, &failures::of_propose(error), answers),
        }
    }

    fn refuse(&self, slots: Vec<Slot>, failure: &Failure, answers: &mut Vec<v1::BatchAnswer>) {
        for slot in slots {
            self.cx.metrics.count_failed(slot.kind, failure.reason);
            answers.push(encode_batched_answer(slot.correlation, Err(failure.clone())));
        }
    }
}

impl Group {
    fn add(&mut self, wire: &v1::BatchCommand, command: Command) {
        let kind = Kind::of(&command);
        self.slots.push(Slot { correlation: wire.correlation, kind, want_digest: wire.want_digest });
        self.commands.push(command);
    }

    /// Those that the book may refuse as it is go by themselves: the others do not wait for that.
    fn split(self, cx: &Context) -> impl Iterator<Item = Group> + use<> {
        let places = cx.node.suspects(&self.commands);
        let (deadline, none) = (self.deadline, places.is_empty());
        let empty = |suspect| Group { deadline, suspect, commands: Vec::new(), slots: Vec::new() };
        let (mut others, mut suspects) = (empty(false), empty(true));
        if none {
            others = self;
        } else {
            for (place, (command, slot)) in self.commands.into_iter().zip(self.slots).enumerate() {
                let group = if places.binary_search(&place).is_ok() { &mut suspects } else { &mut others };
                group.commands.push(command);
                group.slots.push(slot);
            }
        }
        [others, suspects].into_iter().filter(|group| !group.commands.is_empty())
    }
}

async fn propose(cx: Arc<Context>, admitted: Admitted, began: Instant) -> Outcome {
    let Admitted { group: Group { deadline: at, suspect, commands, slots }, ticket } = admitted;
    if !suspect {
        let answered = Some(cx.node.propose(&commands, deadline::on_raft(at)).await);
        return Outcome { slots, began, refused: Vec::new(), answered, _ticket: ticket };
    }
    let Decision { refused: found, proposed } = cx.node.decide(&commands, deadline::on_raft(at)).await;
    let mut slots: Vec<Option<Slot>> = slots.into_iter().map(Some).collect();
    let mut take = |place: usize| slots.get_mut(place).and_then(Option::take);
    let refused = found.into_iter().filter_map(|(place, refused)| Some((take(place)?, refused))).collect();
    let slots = slots.into_iter().flatten().collect();
    Outcome { slots, began, refused, answered: proposed, _ticket: ticket }
}

/// The group that a command with this deadline belongs to. Its deadline is that of its earliest command.
fn group_for(groups: &mut Vec<Group>, now: Instant, at: Instant) -> &mut Group {
    let left = |at: Instant| at.saturating_duration_since(now);
    let near = |group: &Group| {
        let (shorter, longer) = (left(group.deadline.min(at)), left(group.deadline.max(at)));
        longer - shorter <= shorter / DEADLINE_GROUP_FRACTION + Duration::from_millis(1)
    };
    let found = groups.iter().position(near);
    let index = found.unwrap_or_else(|| {
        groups.push(Group { deadline: at, suspect: false, commands: Vec::new(), slots: Vec::new() });
        groups.len() - 1
    });
    let group = &mut groups[index];
    group.deadline = group.deadline.min(at);
    group
}

fn too_many_commands(count: usize) -> FieldError {
    FieldError::new("commands", format!("are {count}; at most {BATCH_COMMANDS_MAX} fit one message"))
}

/// Counts the stream as open for as long as it lives.
struct Open(prometheus_client::metrics::gauge::Gauge);

impl Open {
    fn new(cx: &Context) -> Self {
        let gauge = cx.metrics.streams.clone();
        gauge.inc();
        Open(gauge)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_deadlines_go_together_under_the_earliest() {
        let now = Instant::now();
        let ms = |ms| now + Duration::from_millis(ms);
        let mut groups = Vec::new();
        for at in [100, 101, 99, 5_000, 5_100, 20] {
            group_for(&mut groups, now, ms(at));
        }
        let deadlines: Vec<_> = groups.iter().map(|group| group.deadline).collect();
        assert_eq!(deadlines, [ms(99), ms(5_000), ms(20)]);
    }

    #[test]
    fn a_group_never_drifts_past_its_commands_deadlines() {
        let now = Instant::now();
        let mut groups = Vec::new();
        // A long chain of slightly later deadlines must not pull the last one into the first group.
        for left in 100..400_u64 {
            let at = now + Duration::from_millis(left);
            let group = group_for(&mut groups, now, at);
            assert!(group.deadline <= at);
            assert!(at - group.deadline <= Duration::from_millis(left / 8 + 2));
        }
        assert!(groups.len() > 5, "{}", groups.len());
    }
}
