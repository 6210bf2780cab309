//! Handing an entry to Raft, and what became of it, in words that name nothing of openraft.
//!
//! The one distinction that counts is made here: refused before it was appended (certainly no effect), or
//! anything else than its answers (unknown).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use openraft::errors::ClientWriteError;
use openraft::impls::OneshotResponder;
use openraft::raft::ClientWriteResult;
use openraft_rt::{AsyncRuntime, Oneshot};

use super::leadership::Leadership;
use super::types::{Applied, Payload, TypeConfig};
use crate::propose::{LeaderAt, UnknownWhy};
use crate::replica::AppliedEntry;

type WriteResult<R> = ClientWriteResult<TypeConfig<R>>;
type OnceReceiverOf<R, T> = <<R as AsyncRuntime>::Oneshot as Oneshot>::Receiver<T>;

/// What became of an entry that was handed to Raft.
#[derive(Debug)]
pub(crate) enum Written {
    /// It was committed and applied.
    Applied(AppliedEntry),
    /// Raft refused it before it was appended: certainly no effect. Who leads, if that is known.
    NotLeader(Option<LeaderAt>),
    /// It may be committed, now or later.
    Unknown(UnknownWhy),
}

/// An entry that Raft has: a future of what becomes of it. May be polled from a select and kept.
pub(crate) struct Writing<R: AsyncRuntime> {
    result: OnceReceiverOf<R, WriteResult<R>>,
}

impl<R: AsyncRuntime> Future for Writing<R> {
    type Output = Written;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Written> {
        Pin::new(&mut self.result).poll(cx).map(|result| written::<R>(result.ok()))
    }
}

impl<R: AsyncRuntime> Leadership<R> {
    /// Hands an encoded entry to Raft. Returns once Raft has taken it in, not once it is committed.
    ///
    /// # Errors
    /// Raft has stopped. Whether it had taken the entry in is not known.
    pub(crate) async fn write(&self, payload: Bytes) -> Result<Writing<R>, UnknownWhy> {
        let (tx, result) = R::Oneshot::channel();
        let responder = OneshotResponder::new(tx);
        match self.raft().client_write_ff(Payload(payload), Some(responder)).await {
            Ok(()) => Ok(Writing { result }),
            Err(fatal) => {
                tracing::error!("Raft has stopped: {fatal}");
                Err(UnknownWhy::Stopped)
            }
        }
    }
}

fn written<R: AsyncRuntime>(result: Option<WriteResult<R>>) -> Written {
    match result {
        Some(Ok(response)) => match response.data {
            Applied(Some(entry)) => Written::Applied(entry),
            // An entry of Raft's own stands at that index: not the one that was handed over.
            Applied(None) => Written::Unknown(UnknownWhy::LeadershipLost),
        },
        // Raft refused it before it was appended: openraft gives this error there and nowhere else.
        Some(Err(ClientWriteError::ForwardToLeader(to))) => {
            let leader = to.leader_id.zip(to.leader_node);
            let at = |(node_id, member): (u64, super::types::Member)| LeaderAt {
                node_id,
                client_address: member.client_address,
            };
            Written::NotLeader(leader.map(at))
        }
        Some(Err(
            ClientWriteError::LogEntryDiscarded(_)
            | ClientWriteError::ChangeMembershipError(_)
            | ClientWriteError::PreconditionFailed(_),
        )) => Written::Unknown(UnknownWhy::LeadershipLost),
        None => Written::Unknown(UnknownWhy::Stopped),
    }
}
