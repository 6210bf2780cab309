//! A wall clock on virtual time that can be set wrong.

use std::sync::atomic::{AtomicI64, Ordering};

use holdfast_node::clock::Clock;
use openraft_rt::Instant;
use openraft_rt_sim::SimInstant;

/// The true time at which every simulation begins, ms since the Unix epoch (2027-01-15).
pub(super) const BEGIN_MS: u64 = 1_800_000_000_000;

/// One machine's wall clock: true time plus an offset.
#[derive(Debug)]
pub struct SimClock {
    began: SimInstant,
    offset_ms: AtomicI64,
}

impl SimClock {
    /// A clock that is right. Must be made on the simulation's runtime, when it begins.
    pub fn new(began: SimInstant) -> Self {
        SimClock { began, offset_ms: AtomicI64::new(0) }
    }

    /// Sets it wrong by this much.
    pub fn set_offset_ms(&self, offset_ms: i64) {
        self.offset_ms.store(offset_ms, Ordering::Relaxed);
    }

    /// The true time.
    pub fn true_ms(&self) -> u64 {
        BEGIN_MS + since_us(self.began) / 1000
    }
}

impl Clock for SimClock {
    fn now_ms(&self) -> u64 {
        self.true_ms().saturating_add_signed(self.offset_ms.load(Ordering::Relaxed))
    }
}

/// Virtual microseconds since `began`.
pub(super) fn since_us(began: SimInstant) -> u64 {
    SimInstant::now().saturating_duration_since(began).as_micros() as u64
}
