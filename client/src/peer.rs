//! One member as a client sees it: a queue to its batched stream, which is opened when first needed.

use std::sync::{Arc, Mutex};

use holdfast_proto::{ErrorReason, Failure};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::dial::{Dial, lock};
use crate::limits::QUEUE_COMMANDS_MAX;
use crate::link::{Link, Submission};

/// One member. The stream's task holds the dial and not the peer: when the last client is gone,
/// so is the queue's end, and the task ends.
#[derive(Debug)]
pub(crate) struct Peer {
    dial: Arc<Dial>,
    link: Mutex<Option<RunningLink>>,
}

#[derive(Debug)]
struct RunningLink {
    queue: mpsc::Sender<Submission>,
    task: JoinHandle<()>,
}

impl Peer {
    pub(crate) fn new(dial: Arc<Dial>) -> Arc<Self> {
        Arc::new(Peer { dial, link: Mutex::new(None) })
    }

    pub(crate) fn address(&self) -> &str {
        self.dial.address()
    }

    pub(crate) fn dial(&self) -> &Dial {
        &self.dial
    }

    /// Queues a command for the stream, which is opened if there is none.
    pub(crate) fn submit(&self, submission: Submission) -> Result<(), Failure> {
        let mut link = lock(&self.link);
        let mut submission = submission;
        if let Some(running) = link.as_ref() {
            match running.queue.try_send(submission) {
                Ok(()) => return Ok(()),
                Err(mpsc::error::TrySendError::Full(_)) => {
                    return Err(Failure::overloaded("QUEUE_COMMANDS_MAX"));
                }
                // The stream was lost; its task has told everybody and ends.
                Err(mpsc::error::TrySendError::Closed(back)) => submission = back,
            }
        }
        let (queue, commands) = mpsc::channel(QUEUE_COMMANDS_MAX);
        let task = tokio::spawn(Link::new(Arc::clone(&self.dial), commands).run());
        let sent = queue.try_send(submission);
        *link = Some(RunningLink { queue, task });
        sent.map_err(|_| Failure::overloaded("QUEUE_COMMANDS_MAX"))
    }

    /// Lets nobody queue any more and waits until everything queued has ended.
    pub(crate) async fn close(&self) {
        let running = lock(&self.link).take();
        if let Some(RunningLink { queue, task }) = running {
            drop(queue);
            if let Err(error) = task.await {
                tracing::warn!(member = %self.address(), %error, "the stream's task failed");
            }
        }
        self.dial.forget_channel();
    }
}

/// A client is closed, or about to be.
pub(crate) fn closed() -> Failure {
    Failure::new(ErrorReason::ShuttingDown, "the client is closed")
}
