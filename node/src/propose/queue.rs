//! The callers' side: a bounded queue, and deadlines that are kept on both sides of the hand-over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use bytes::Bytes;
use holdfast_ledger::Command;
use holdfast_ledger::plan::Calendar;
use openraft_rt::{AsyncRuntime, Instant, Mpsc, MpscSender, Oneshot, OneshotSender};

use super::encode::encode_commands;
use super::refuse::{Refuser, UnderWay};
use super::{Answered, ProposeError, UnknownWhy};
use crate::raft::limits::ENTRY_COMMANDS_MAX;

type SenderOf<R, T> = <<R as AsyncRuntime>::Mpsc as Mpsc>::Sender<T>;
type ReceiverOf<R, T> = <<R as AsyncRuntime>::Mpsc as Mpsc>::Receiver<T>;
type OnceSenderOf<R, T> = <<R as AsyncRuntime>::Oneshot as Oneshot>::Sender<T>;

/// Still in the queue: either side may decide.
const WAITING: u8 = 0;
/// In an entry that was handed to Raft, or about to be.
const HANDED_OVER: u8 = 1;
/// The caller gave up first: the batcher drops it.
const GIVEN_UP: u8 = 2;

/// One proposal in the queue.
pub(crate) struct Waiting<R: AsyncRuntime> {
    pub(super) encoded: Bytes,
    pub(super) count: usize,
    /// Calendars of the plans in it: their bounds go into its entry.
    pub(super) calendars: Vec<Arc<Calendar>>,
    pub(super) deadline: R::Instant,
    stage: Arc<AtomicU8>,
    /// `None` once it was taken.
    queued: Option<Queued>,
    /// Until it is answered, whether or not its caller has given up.
    _under_way: UnderWay,
    reply: OnceSenderOf<R, Result<Answered, ProposeError>>,
}

/// Commands that count as waiting for as long as this lives: also where their caller goes away while they
/// are being queued, and where the queue goes away with them in it.
struct Queued {
    count: usize,
    all: Arc<AtomicUsize>,
}

impl Queued {
    fn begin(count: usize, all: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let add = |held: usize| held.checked_add(count).filter(|sum| *sum <= most);
        all.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).ok()?;
        Some(Queued { count, all: all.clone() })
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.all.fetch_sub(self.count, Ordering::AcqRel);
    }
}

impl<R: AsyncRuntime> Waiting<R> {
    /// Takes it for an entry. `None` if the caller has given up or its time is up: it is answered then.
    pub(super) fn take(mut self) -> Option<Self> {
        self.queued = None;
        if self.stage.load(Ordering::Acquire) == WAITING && R::Instant::now() >= self.deadline {
            self.answer(Err(ProposeError::Late));
            return None;
        }
        let handed = self.stage.compare_exchange(WAITING, HANDED_OVER, Ordering::AcqRel, Ordering::Acquire);
        handed.is_ok().then_some(self)
    }

    pub(super) fn answer(self, outcome: Result<Answered, ProposeError>) {
        // A caller that is gone has got its answer from its deadline.
        let _ = self.reply.send(outcome);
    }
}

/// Hands commands to the batcher. Cheap to clone.
pub(crate) struct Proposer<R: AsyncRuntime> {
    queue: SenderOf<R, Waiting<R>>,
    queued: Arc<AtomicUsize>,
    queued_max: usize,
    refuser: Arc<Refuser>,
}

impl<R: AsyncRuntime> Clone for Proposer<R> {
    fn clone(&self) -> Self {
        let (queue, queued, refuser) = (self.queue.clone(), self.queued.clone(), self.refuser.clone());
        Proposer { queue, queued, queued_max: self.queued_max, refuser }
    }
}

impl<R: AsyncRuntime> Proposer<R> {
    /// A queue of at most `queued_max` commands, and the batcher's end of it.
    pub(crate) fn new(queued_max: usize) -> (Self, ReceiverOf<R, Waiting<R>>) {
        // Proposals have at least one command, so the channel never fills before the count does.
        let (queue, receiver) = R::Mpsc::channel(queued_max.max(1));
        (Proposer { queue, queued: Arc::default(), queued_max, refuser: Arc::default() }, receiver)
    }

    /// What is known of refusals.
    pub(crate) fn refuser(&self) -> &Refuser {
        &self.refuser
    }

    /// Commands that wait.
    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Proposes `commands` together, in one entry and in this order, and waits for their answers.
    pub(crate) async fn propose(
        &self,
        commands: &[Command],
        deadline: R::Instant,
    ) -> Result<Answered, ProposeError> {
        if commands.is_empty() || commands.len() > ENTRY_COMMANDS_MAX {
            let problem =
                format!("has {} commands; 1 to {ENTRY_COMMANDS_MAX} are proposed together", commands.len());
            return Err(ProposeError::Invalid { field: "commands".into(), problem });
        }
        let calendars = super::bounds::check_calendars(commands)?;
        let count = commands.len();
        let queued = Queued::begin(count, &self.queued, self.queued_max).ok_or(ProposeError::Overloaded)?;
        let stage = Arc::new(AtomicU8::new(WAITING));
        let (reply, answer) = R::Oneshot::channel();
        let waiting = Waiting {
            encoded: encode_commands(commands),
            count,
            calendars,
            deadline,
            stage: stage.clone(),
            queued: Some(queued),
            _under_way: self.refuser.begin(commands),
            reply,
        };
        if self.queue.send(waiting).await.is_err() {
            return Err(ProposeError::Stopping);
        }
        match R::timeout_at(deadline, answer).await {
            Ok(Ok(outcome)) => {
                if let Ok(answered) = &outcome {
                    self.refuser.note(commands, &answered.answers);
                }
                outcome
            }
            // The batcher is gone. What it had not taken is certainly not proposed.
            Ok(Err(_)) => Err(give_up(&stage, ProposeError::Stopping, UnknownWhy::Stopped)),
            Err(_) => Err(give_up(&stage, ProposeError::Late, UnknownWhy::TimedOut)),
        }
    }
}

fn give_up(stage: &AtomicU8, certain: ProposeError, unknown: UnknownWhy) -> ProposeError {
    match stage.compare_exchange(WAITING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => certain,
        Err(_) => ProposeError::Unknown(unknown),
    }
}
