//! The bell that rings when the book has a new event, for those who follow them.

use std::sync::Arc;

use holdfast_ledger::Effect;
use tokio::sync::watch;

use crate::replica::{AppliedRecord, BookView, EffectSink};

/// An [`EffectSink`] that tells the number of the last event, and passes everything on.
pub struct EventBell {
    last: Arc<watch::Sender<u64>>,
    next: Box<dyn EffectSink>,
}

/// Where the number of the last event is heard.
#[derive(Clone, Debug)]
pub struct EventEar(Arc<watch::Sender<u64>>);

impl EventBell {
    /// A bell before another sink.
    pub fn before(next: Box<dyn EffectSink>) -> (EventBell, EventEar) {
        let last = Arc::new(watch::Sender::new(0));
        (EventBell { last: Arc::clone(&last), next }, EventEar(last))
    }
}

impl EventEar {
    /// Hears from now on.
    pub fn listen(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

impl EffectSink for EventBell {
    fn attached(&self, book: BookView) {
        self.next.attached(book);
    }

    fn entry_applied(&self, index: u64, effects: Vec<Effect>) {
        let last = effects.iter().rev().find_map(|effect| match effect {
            Effect::Event(event) => Some(event.sequence),
            Effect::Ended(_) | Effect::Statement(_) => None,
        });
        if let Some(last) = last {
            self.last.send_replace(last);
        }
        self.next.entry_applied(index, effects);
    }

    fn restored(&self, index: u64) {
        // The snapshot may have events that nobody heard of here.
        self.last.send_modify(|_| {});
        self.next.restored(index);
    }

    fn recorded(&self, record: &AppliedRecord<'_>) {
        self.next.recorded(record);
    }
}
