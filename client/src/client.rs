//! The client: one handle for everything, cheap to clone.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_proto::answers::{Decided, Done, decode_batched_answer};
use holdfast_proto::commands::encode_batched;
use holdfast_proto::ledger::command::Release;
use holdfast_proto::ledger::{Command, ReservationId};
use holdfast_proto::v1::batch_command::Command as Wire;
use holdfast_proto::{FieldError, v1};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::abandoned::{Abandoned, Undo};
use crate::core::{Advice, CommandCall, Next, Reply, advice};
use crate::dial::Connecting;
use crate::error::{CallError, Unknown};
use crate::link::{Ending, Submission, Time};
use crate::options::{CallOptions, ClientBuilder};
use crate::peer::Peer;
use crate::request::Request;
use crate::reservation::Reservation;
use crate::router::{Picked, Router};

/// A client of one cluster. Clones share connections, and handles with other settings do too.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    pub(crate) options: CallOptions,
    /// Asks this member only.
    pinned: Option<Arc<Peer>>,
}

/// What the handles of a client share. The background task holds the core and not this, so that it
/// ends when the last handle is gone.
#[derive(Debug)]
struct Shared {
    core: Arc<Core>,
    abandoned: Mutex<Option<Abandoned>>,
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) router: Arc<Router>,
    /// The zero of the calls' clock.
    started: Instant,
}

impl Client {
    /// Connects to a cluster, of which any one member is enough. See [`Client::builder`] for settings.
    pub async fn connect(
        endpoints: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Client, CallError> {
        Client::builder(endpoints).connect().await
    }

    /// Settings of a client; endpoints are `host:port`.
    pub fn builder(endpoints: impl IntoIterator<Item = impl Into<String>>) -> ClientBuilder {
        ClientBuilder::new(endpoints)
    }

    pub(crate) fn new(endpoints: Vec<String>, connecting: Connecting, options: CallOptions) -> Client {
        let core = Arc::new(Core { router: Router::new(endpoints, connecting), started: Instant::now() });
        let abandoned = Abandoned::spawn(Arc::clone(&core), options);
        let shared = Arc::new(Shared { core, abandoned: Mutex::new(Some(abandoned)) });
        Client { shared, options, pinned: None }
    }

    /// The same client with another deadline for its calls.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Client {
        let mut client = self.clone();
        client.options.deadline = deadline;
        client
    }

    /// The same client, whose reads are answered from what the asked member has applied, without
    /// asking the quorum. Reads are linearizable otherwise.
    #[must_use]
    pub fn with_stale_reads(&self) -> Client {
        let mut client = self.clone();
        client.options.stale = true;
        client
    }

    /// The same client, which asks for the book's digest with every answer.
    #[must_use]
    pub fn with_digests(&self) -> Client {
        let mut client = self.clone();
        client.options.want_digest = true;
        client
    }

    /// The same client, which asks this member only and follows nobody's word of who leads.
    /// For stale reads, audits and status of a single member.
    #[must_use]
    pub fn at(&self, address: &str) -> Client {
        let mut client = self.clone();
        client.pinned = Some(self.core().router.peer(address));
        client
    }

    /// Addresses of every member that the client knows of.
    pub fn known_members(&self) -> Vec<String> {
        self.core().router.members()
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.shared.core
    }

    pub(crate) fn pinned(&self) -> Option<&Arc<Peer>> {
        self.pinned.as_ref()
    }

    /// Holds capacity: on every limit that applies, or on none.
    ///
    /// Dropping the future before it is done releases its id in the background.
    ///
    /// # Errors
    /// *Rejected* by a limit; *invalid*; *unavailable*, certainly without effect; or *unknown*: then
    /// [`Client::resolve`] it or [`Client::release`] its id.
    pub async fn reserve(&self, request: Request) -> Result<Reservation, CallError> {
        let reserve = request.into_reserve(unix_ms(), rand::random())?;
        let decided = self.submit(Command::Reserve(reserve)).await?;
        self.adopt(decided)
    }

    /// Resolves an unknown outcome by repeating the command under its own id. A reserve is
    /// admitted, found as it was admitted, or certainly refused.
    pub async fn resolve(&self, unknown: Unknown) -> Result<Decided, CallError> {
        let Unknown { command, attempts, .. } = unknown;
        let nothing = "a call that is not about a reservation is looked up by what it would have changed";
        let command = command.ok_or_else(|| FieldError::new("command", nothing))?;
        self.core().run(self, command, attempts).await
    }

    /// The guard of a reservation whose receipt came from [`Client::resolve`], [`Client::submit`]
    /// or [`Client::get`]: for callers that take one over.
    pub fn adopt(&self, decided: Decided) -> Result<Reservation, CallError> {
        match decided.done {
            Done::Receipt(receipt) => Ok(Reservation::new(self.clone(), *receipt, decided.revision)),
            Done::Tombstone(id) => Err(FieldError::new("id", format!("{id} is a tombstone")).into()),
        }
    }

    /// Ends a reservation that was not started, or closes an id for ever that was never seen.
    pub async fn release(&self, id: ReservationId) -> Result<Decided, CallError> {
        self.submit(Command::Release(Release { id })).await
    }

    /// Submits one command of the ledger service as it stands. The other calls are made of this one;
    /// it is for programs that keep ids and operations themselves. A reserve's attempt number and
    /// digest are filled in.
    pub async fn submit(&self, command: Command) -> Result<Decided, CallError> {
        self.core().run(self, command, 0).await
    }

    /// Gives an id to the background task, which releases it. False if it has no room or is gone.
    pub(crate) fn abandon(&self, id: ReservationId) -> bool {
        let abandoned = crate::dial::lock(&self.shared.abandoned);
        abandoned.as_ref().is_some_and(|abandoned| abandoned.release(id))
    }

    /// Waits until everything that was dropped has been released and every connection has ended.
    /// Calls of other handles fail from here on.
    pub async fn close(self) {
        let abandoned = crate::dial::lock(&self.shared.abandoned).take();
        if let Some(abandoned) = abandoned {
            abandoned.close().await;
        }
        self.core().router.close().await;
    }
}

/// Milliseconds since the Unix epoch, for fresh ids.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Core {
    /// The calls' clock.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn instant(&self, at_ms: u64) -> Instant {
        self.started + Duration::from_millis(at_ms)
    }

    /// Runs one command to its end: the call's decisions are made in [`CommandCall`], this carries them out.
    async fn run(&self, client: &Client, command: Command, attempts: u32) -> Result<Decided, CallError> {
        let undo = match &command {
            Command::Reserve(reserve) => Some(Undo::new(client, reserve.id)),
            _ => None,
        };
        let ended = self.run_pinned(&client.options, client.pinned.as_ref(), command, attempts).await;
        if let Some(undo) = undo {
            undo.disarm();
        }
        ended
    }

    /// As [`Core::run`], without undoing anything when the future is dropped.
    pub(crate) async fn run_pinned(
        &self,
        options: &CallOptions,
        pinned: Option<&Arc<Peer>>,
        command: Command,
        attempts: u32,
    ) -> Result<Decided, CallError> {
        let deadline_ms = self.now_ms().saturating_add(as_ms(options.deadline));
        let mut call = CommandCall::new(command, deadline_ms, attempts);
        let mut next = call.resume(self.now_ms());
        loop {
            match next {
                Next::Send => {}
                Next::Pause { ms } => {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    next = call.resume(self.now_ms());
                    continue;
                }
                Next::End(ended) => return *ended,
            }
            let wire = encode_batched(&call.outgoing()).ok_or_else(not_batched)?;
            let asked = self.pick(pinned);
            let (reply, decided) = self.attempt(options, &asked.peer, wire, deadline_ms).await;
            if pinned.is_none() {
                self.tell(&asked, &reply);
            }
            next = call.on_reply(self.now_ms(), reply, decided, rand::random());
        }
    }

    /// Tells the routes what a reply says of the member that gave it.
    pub(crate) fn tell(&self, asked: &Picked, reply: &Reply) {
        match advice(reply) {
            // The usual case takes no lock.
            Advice::Keep if asked.leads => {}
            other => self.router.advise(&asked.peer, other),
        }
    }

    /// The member to ask: the pinned one, or the one that is thought to lead.
    pub(crate) fn pick(&self, pinned: Option<&Arc<Peer>>) -> Picked {
        match pinned {
            Some(peer) => Picked { peer: Arc::clone(peer), leads: false },
            None => self.router.pick(),
        }
    }

    async fn attempt(
        &self,
        options: &CallOptions,
        asked: &Arc<Peer>,
        command: Wire,
        deadline_ms: u64,
    ) -> (Reply, Option<Decided>) {
        let time = Time {
            deadline: self.instant(deadline_ms),
            since: Instant::now(),
            patience: options.attempt_timeout,
        };
        let (reply, ending) = oneshot::channel();
        let submission = Submission { command, want_digest: options.want_digest, time, reply };
        if let Err(failure) = asked.submit(submission) {
            return (Reply::NotSent(failure), None);
        }
        match ending.await {
            Ok(Ending::Answered(answer)) => read(answer),
            Ok(Ending::Refused(failure)) => (Reply::Failed(failure), None),
            Ok(Ending::NotSent(failure)) => (Reply::NotSent(failure), None),
            Ok(Ending::Lost(why)) => (Reply::Lost(why), None),
            Err(_) => (Reply::Lost("the connection's task ended".to_owned()), None),
        }
    }
}

pub(crate) fn as_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn read(answer: v1::BatchAnswer) -> (Reply, Option<Decided>) {
    match decode_batched_answer(answer) {
        Ok(Ok(decided)) => (Reply::Done, Some(decided)),
        Ok(Err(failure)) => (Reply::Failed(failure), None),
        Err(error) => (Reply::Lost(format!("an answer that cannot be read: {error}")), None),
    }
}

fn not_batched() -> FieldError {
    FieldError::new("command", "is not one of the ledger service")
}
