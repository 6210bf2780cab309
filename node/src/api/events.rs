//! The stream of events: from any number that is kept, and on as they happen.
//!
//! One state machine per stream, driven by the connection that reads it: no task of its own, and a caller that
//! does not read costs nothing but its place.

use std::sync::Arc;

use futures_util::stream::{Stream, unfold};
use holdfast_ledger::event::Event;
use holdfast_ledger::ids::TenantId;
use holdfast_proto::events::{encode_event, tenant_of};
use holdfast_proto::{ErrorReason, Failure, v1};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tonic::Status;

use super::{Context, failures};
use crate::limits::{EVENT_STREAMS_MAX, EVENTS_PER_MESSAGE_MAX};

/// What a caller follows.
struct Watch {
    cx: Arc<Context>,
    /// The number of the next event to look at; 0 until the first one kept is known.
    next: u64,
    follow: bool,
    tenant: Option<TenantId>,
    news: watch::Receiver<u64>,
    stop: watch::Receiver<bool>,
    ended: bool,
    /// Its place among the streams of this node.
    _place: OwnedSemaphorePermit,
}

/// A piece of the log of events.
struct Piece {
    events: Vec<Arc<Event>>,
    /// The number to ask for next.
    next: u64,
    /// Whether there are more already.
    more: bool,
}

/// The events that a caller asked for.
///
/// # Errors
/// It asked for events that are not kept any more, or too many follow already.
pub(super) fn watch_events(
    cx: &Arc<Context>,
    from: u64,
    follow: bool,
    tenant: Option<TenantId>,
) -> Result<impl Stream<Item = Result<v1::WatchEventsResponse, Status>> + Send + 'static, Failure> {
    let place = Arc::clone(&cx.event_streams).try_acquire_owned();
    let place = place.map_err(|_| {
        let ceiling = Failure::overloaded("EVENT_STREAMS_MAX");
        ceiling.with_metadata("event_streams_max", EVENT_STREAMS_MAX)
    })?;
    // Listens before it looks, so that nothing falls in between.
    let watch = Watch {
        news: cx.events.listen(),
        stop: cx.stop.clone(),
        cx: Arc::clone(cx),
        next: from,
        follow,
        tenant,
        ended: false,
        _place: place,
    };
    watch.check_kept()?;
    Ok(unfold(watch, |mut watch| async move {
        let item = watch.step().await?;
        Some((item, watch))
    }))
}

impl Watch {
    /// Whether the next event is still kept.
    fn check_kept(&self) -> Result<(), Failure> {
        let (first, revision) = self.cx.replica().read(|book| (book.first_event(), book.revision()));
        if self.next == 0 || self.next >= first {
            return Ok(());
        }
        let message = format!("the first event that is kept is {first}");
        let failure = Failure::new(ErrorReason::EventsGone, message).with_metadata("first_kept", first);
        Err(failure.at_revision(revision))
    }

    async fn step(&mut self) -> Option<Result<v1::WatchEventsResponse, Status>> {
        while !self.ended {
            self.news.borrow_and_update();
            if let Err(failure) = self.check_kept() {
                // It read more slowly than events were forgotten.
                self.ended = true;
                return Some(Err(self.cx.status(failure)));
            }
            let Piece { events, next, more } = self.read();
            let passed = next != self.next;
            self.next = next;
            self.ended = !more && !self.follow;
            if passed {
                let events = events.iter().map(|event| encode_event(event)).collect();
                return Some(Ok(v1::WatchEventsResponse { events, next }));
            }
            if self.ended {
                return None;
            }
            tokio::select! {
                changed = self.news.changed() => self.ended = changed.is_err(),
                _ = self.stop.wait_for(|stop| *stop) => {
                    self.ended = true;
                    return Some(Err(self.cx.status(failures::shutting_down())));
                }
            }
        }
        None
    }

    fn read(&self) -> Piece {
        self.cx.replica().read(|book| {
            let from = self.next.max(book.first_event());
            let piece: Vec<_> = book.events_from(from).take(EVENTS_PER_MESSAGE_MAX).cloned().collect();
            let next = from + piece.len() as u64;
            let wanted = |event: &Arc<Event>| {
                self.tenant.as_ref().is_none_or(|tenant| tenant_of(&event.kind) == Some(tenant))
            };
            let more = next <= book.last_event();
            Piece { events: piece.into_iter().filter(wanted).collect(), next, more }
        })
    }
}
