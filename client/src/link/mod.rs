//! One connection's batched stream, and the task that owns it.
//!
//! Callers queue commands; the task puts whatever is queued into one message. It clocks itself: a
//! few messages may be under way, then the next one waits for an answer and grows meanwhile. No
//! timer paces it, and one timer for the whole connection watches every deadline.

mod in_flight;
mod window;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use holdfast_proto::{ErrorReason, Failure, v1};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::{Status, Streaming};

use crate::dial::Dial;
use crate::limits::{IN_FLIGHT_COMMANDS_MAX, STREAM_MESSAGES_MAX};
use in_flight::InFlight;
use window::Window;

/// One attempt of one caller's command.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) command: v1::batch_command::Command,
    pub(crate) want_digest: bool,
    pub(crate) time: Time,
    pub(crate) reply: oneshot::Sender<Ending>,
}

/// How long an attempt may take.
///
/// A member that decides other commands of the stream is alive, and this one has its turn: it has until the
/// call's deadline. To try elsewhere because a busy member is slow would only give it the same command twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    /// When the call must have ended.
    pub(crate) deadline: Instant,
    /// When it was queued, or sent.
    pub(crate) since: Instant,
    /// How long its member may decide nothing at all.
    pub(crate) patience: Duration,
}

impl Time {
    /// When it is up with a member that was last `heard` to decide something.
    fn is_up_at(self, heard: Instant) -> Instant {
        self.deadline.min(self.since.max(heard) + self.patience)
    }
}

/// What became of an attempt.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it moves into the heap cell of a oneshot as it is; a box would be a second one"
)]
pub(crate) enum Ending {
    /// The member's answer.
    Answered(v1::BatchAnswer),
    /// The member refused the whole stream: nothing was done.
    Refused(Failure),
    /// It never went on the stream: nothing was done.
    NotSent(Failure),
    /// It went on the stream, and no answer came.
    Lost(String),
}

/// The task's state.
pub(crate) struct Link {
    dial: Arc<Dial>,
    queue: mpsc::Receiver<Submission>,
    /// Whether somebody may still queue commands.
    queue_is_open: bool,
    /// Taken from the queue, not sent yet.
    waiting: VecDeque<Submission>,
    in_flight: InFlight,
    window: Window,
    /// When the member last decided something.
    heard: Instant,
    /// Rings at the earliest deadline of all, or before.
    timer: Pin<Box<Sleep>>,
    timer_is_set: bool,
    /// Kept between rounds, so that draining the queue allocates nothing.
    fresh: Vec<Submission>,
}

/// Both directions of an open stream.
type Stream = (mpsc::Sender<v1::BatchRequest>, Streaming<v1::BatchResponse>);

impl Link {
    pub(crate) fn new(dial: Arc<Dial>, queue: mpsc::Receiver<Submission>) -> Self {
        let window = Window::new(dial.batch_max());
        Link {
            dial,
            queue,
            queue_is_open: true,
            waiting: VecDeque::new(),
            in_flight: InFlight::default(),
            window,
            heard: Instant::now(),
            timer: Box::pin(sleep_until(Instant::now())),
            timer_is_set: false,
            fresh: Vec::new(),
        }
    }

    /// Runs until the stream is lost or nobody is left who could queue commands. Everybody whose
    /// command was taken learns how it ended.
    pub(crate) async fn run(mut self) {
        let dial = Arc::clone(&self.dial);
        let opening = dial.open_stream(STREAM_MESSAGES_MAX);
        match self.wait_for(opening).await {
            Ok(stream) => {
                let why = self.serve(stream).await;
                tracing::debug!(member = %self.dial.address(), %why, "the batched stream ended");
                self.dial.forget_channel();
                self.in_flight.end_all(|| Ending::Lost(why.clone()));
                self.end_unsent(|| Ending::NotSent(Failure::new(ErrorReason::Unreachable, why.clone())));
            }
            Err(OpenError::Refused(failure)) => self.end_unsent(|| Ending::Refused(failure.clone())),
            Err(OpenError::Unreachable(why)) => {
                tracing::debug!(member = %self.dial.address(), %why, "the member cannot be reached");
                self.dial.forget_channel();
                self.end_unsent(|| Ending::NotSent(Failure::new(ErrorReason::Unreachable, why.clone())));
            }
        }
    }

    /// Waits for the stream to open, and ends commands meanwhile whose time is up.
    async fn wait_for(
        &mut self,
        opening: impl Future<Output = Result<Stream, OpenError>>,
    ) -> Result<Stream, OpenError> {
        let mut opening = pin!(opening);
        loop {
            let room = self.room();
            tokio::select! {
                biased;
                opened = &mut opening => return opened,
                taken = self.queue.recv_many(&mut self.fresh, room), if self.queue_is_open && room > 0 => {
                    self.take_fresh(taken);
                }
                () = &mut self.timer, if self.timer_is_set => self.expire(),
            }
        }
    }

    /// Sends and receives until the stream ends, and says why it did.
    async fn serve(&mut self, (out, mut answers): Stream) -> String {
        loop {
            if !self.queue_is_open && self.waiting.is_empty() && !self.in_flight.is_awaited() {
                return "the client is closed".to_owned();
            }
            let room = self.room();
            let ready = self.window.lets_go(self.waiting.len());
            tokio::select! {
                biased;
                message = answers.message() => match message {
                    Ok(Some(message)) => self.on_message(message),
                    Ok(None) => return "the member ended the stream".to_owned(),
                    Err(status) => return status_text(&status),
                },
                taken = self.queue.recv_many(&mut self.fresh, room), if self.queue_is_open && room > 0 => {
                    self.take_fresh(taken);
                    // The callers that were woken together with the one that woke this task queue
                    // their commands first; without this every one of them would get its own message.
                    tokio::task::yield_now().await;
                }
                permit = out.reserve(), if ready => match permit {
                    Ok(permit) => {
                        if let Some(message) = self.next_message() {
                            permit.send(message);
                        }
                    }
                    Err(_) => return "the connection was closed".to_owned(),
                },
                () = &mut self.timer, if self.timer_is_set => self.expire(),
            }
        }
    }

    fn room(&self) -> usize {
        IN_FLIGHT_COMMANDS_MAX.saturating_sub(self.waiting.len() + self.in_flight.len())
    }

    fn take_fresh(&mut self, taken: usize) {
        if taken == 0 {
            self.queue_is_open = false;
        }
        let mut earliest: Option<Instant> = None;
        for submission in self.fresh.drain(..) {
            let up = submission.time.is_up_at(self.heard);
            earliest = Some(earliest.map_or(up, |earliest| earliest.min(up)));
            self.waiting.push_back(submission);
        }
        if let Some(earliest) = earliest
            && (!self.timer_is_set || earliest < self.timer.deadline())
        {
            self.set_timer(Some(earliest));
        }
    }

    /// The next message: what waits, up to a message's bound. `None` if all of it came too late.
    fn next_message(&mut self) -> Option<v1::BatchRequest> {
        let count = self.window.take(self.waiting.len());
        let now = Instant::now();
        let mut commands = Vec::with_capacity(count);
        for submission in self.waiting.drain(..count) {
            let deadline = submission.time.deadline;
            if deadline <= now {
                let _ = submission.reply.send(Ending::NotSent(too_late()));
                continue;
            }
            // A caller that has gone away has its reasons; what it asked for is not done behind its back.
            if submission.reply.is_closed() {
                continue;
            }
            let left = deadline - now;
            let time = Time { since: now, ..submission.time };
            commands.push(v1::BatchCommand {
                correlation: self.in_flight.insert(time, submission.reply),
                // Rounded up: 0 would mean no bound.
                deadline_ms: left.as_millis() as u64 + 1,
                want_digest: submission.want_digest,
                command: Some(submission.command),
            });
        }
        if commands.is_empty() {
            return None;
        }
        self.window.on_sent();
        Some(v1::BatchRequest { commands })
    }

    fn on_message(&mut self, message: v1::BatchResponse) {
        self.window.on_answer();
        if message.answers.iter().any(is_decision) {
            self.heard = Instant::now();
        }
        for answer in message.answers {
            let correlation = answer.correlation;
            if !self.in_flight.end(correlation, Ending::Answered(answer)) {
                tracing::trace!(correlation, "an answer that nobody waits for");
            }
        }
    }

    fn expire(&mut self) {
        let now = Instant::now();
        let mut next =
            self.in_flight.expire(now, self.heard, || Ending::Lost("no answer in time".to_owned()));
        // Whoever was waited for is given up: others must not wait for it too.
        self.window.on_answer();
        for _ in 0..self.waiting.len() {
            let Some(submission) = self.waiting.pop_front() else { break };
            let up = submission.time.is_up_at(self.heard);
            if up <= now {
                let _ = submission.reply.send(Ending::NotSent(too_late()));
            } else {
                next = Some(next.map_or(up, |next| next.min(up)));
                self.waiting.push_back(submission);
            }
        }
        self.set_timer(next);
    }

    fn set_timer(&mut self, at: Option<Instant>) {
        self.timer_is_set = at.is_some();
        if let Some(at) = at {
            self.timer.as_mut().reset(at);
        }
    }

    /// Ends what was not sent, what still stands in the queue included.
    fn end_unsent(&mut self, mut ending: impl FnMut() -> Ending) {
        self.queue.close();
        for submission in self.waiting.drain(..) {
            let _ = submission.reply.send(ending());
        }
        while let Ok(submission) = self.queue.try_recv() {
            let _ = submission.reply.send(ending());
        }
    }
}

/// Whether the book decided it. That a member refuses commands without asking its book does not say that
/// those it has taken before go anywhere.
fn is_decision(answer: &v1::BatchAnswer) -> bool {
    match &answer.outcome {
        Some(v1::batch_answer::Outcome::Answer(_)) => true,
        Some(v1::batch_answer::Outcome::Failure(failure)) => failure.revision.is_some(),
        None => false,
    }
}

/// Why a stream could not be opened. Nothing was sent in any case.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// The member refuses this client.
    Refused(Failure),
    /// No connection, or nobody answers.
    Unreachable(String),
}

fn too_late() -> Failure {
    Failure::new(ErrorReason::DroppedLate, "the time was up before it could be sent")
}

pub(crate) fn status_text(status: &Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
}
