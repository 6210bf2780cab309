//! Calls that do not go through the batched stream: reads and operators' commands.

use std::future::Future;
use std::time::Duration;

use holdfast_proto::{ErrorReason, Failure};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use crate::client::{Client, as_ms};
use crate::core::{Call, Kind, Reply, Step};
use crate::error::{CallError, failed};
use crate::link::status_text;
use crate::peer::closed;

impl Client {
    /// Calls the member that is thought to lead until it is answered, out of time, or refused.
    pub(crate) async fn unary<M, T, F>(
        &self,
        kind: Kind,
        message: M,
        send: impl Fn(Channel, Request<M>) -> F,
    ) -> Result<T, CallError>
    where
        M: Clone,
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let core = self.core();
        let deadline_ms = core.now_ms().saturating_add(as_ms(self.options.deadline));
        let mut call = Call::new(kind, deadline_ms);
        let mut step = call.resume(core.now_ms());
        let mut answer = None;
        loop {
            match step {
                Step::Send { .. } => {}
                Step::Pause { ms } => {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    step = call.resume(core.now_ms());
                    continue;
                }
                Step::Close => return Err(CallError::Unavailable(closed())),
                Step::End(verdict) => {
                    return match (failed(verdict, None, call.attempts()), answer) {
                        (Some(error), _) => Err(error),
                        (None, Some(answer)) => Ok(answer),
                        (None, None) => Err(CallError::Unavailable(closed())),
                    };
                }
            }
            let asked = core.pick(self.pinned());
            let left_ms = deadline_ms.saturating_sub(core.now_ms());
            let timeout = Duration::from_millis(left_ms).min(self.options.attempt_timeout);
            let attempt = async {
                let channel = asked.peer.dial().channel().await;
                let channel =
                    channel.map_err(|why| Reply::NotSent(Failure::new(ErrorReason::Unreachable, why)))?;
                let mut request = core.router.connecting().request(message.clone());
                request.set_timeout(timeout);
                send(channel, request).await.map_err(|status| read(&status))
            };
            let reply = match tokio::time::timeout(timeout, attempt).await {
                Ok(Ok(response)) => {
                    answer = Some(response.into_inner());
                    Reply::Done
                }
                Ok(Err(reply)) => reply,
                Err(_) => Reply::Lost(format!("{} does not answer", asked.peer.address())),
            };
            if matches!(reply, Reply::Lost(_)) {
                asked.peer.dial().forget_channel();
            }
            // That a member answers a read does not mean that it leads.
            let tells_nothing = kind == Kind::Read && reply == Reply::Done;
            if self.pinned().is_none() && !tells_nothing {
                core.tell(&asked, &reply);
            }
            step = call.on_reply(core.now_ms(), reply, rand::random());
        }
    }
}

/// What a status says: only ours may be believed.
fn read(status: &Status) -> Reply {
    match Failure::from_status(status) {
        Some(failure) => Reply::Failed(failure),
        None => Reply::Lost(status_text(status)),
    }
}
