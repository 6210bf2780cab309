//! Time: the only reader of the wall clock, the stamps, and the guard over them.
//!
//! A leader's stamps decide when capacity comes back, so a leader whose clock is wrong must not stamp.
//! Each stamp is compared with the monotonic clock since the last comparison (a step of the wall clock)
//! and with the median of the members' clocks (a clock that was wrong all along). Heartbeats bring the
//! members' clocks; a sample is kept as "their clock at that monotonic instant", so that a step of this
//! node's own wall clock does not spoil it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use openraft_rt::{AsyncRuntime, Instant};

/// A wall clock: milliseconds since the Unix epoch. It may be wrong, step and drift.
pub trait Clock: Send + Sync + 'static {
    /// Now, ms.
    fn now_ms(&self) -> u64;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

impl Clock for RealClock {
    fn now_ms(&self) -> u64 {
        // A clock before 1970 reads as 0: the guard then finds it far off every other member's.
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
    }
}

/// How the guard judges.
#[derive(Clone, Copy, Debug)]
pub struct ClockBounds {
    /// Most that a stamp may differ from the median, and the wall clock from the monotonic one, ms.
    pub off_ms_max: u64,
    /// Samples older than this are not counted.
    pub sample_age_max: Duration,
}

/// Why a leader may not stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockFault {
    /// Fewer members' clocks are known than a quorum.
    NoQuorum {
        /// Members whose clock is known, this node included.
        known: usize,
        /// How many it takes.
        needed: usize,
    },
    /// The wall clock stepped against the monotonic one, ms (negative: back).
    Stepped {
        /// By how much.
        by_ms: i64,
    },
    /// The wall clock lies off the median of the members', ms (positive: ahead).
    OffMedian {
        /// By how much.
        by_ms: i64,
    },
}

impl fmt::Display for ClockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClockFault::NoQuorum { known, needed } => {
                write!(f, "the clocks of only {known} members are known, {needed} are needed")
            }
            ClockFault::Stepped { by_ms } => write!(f, "the wall clock stepped by {by_ms} ms"),
            ClockFault::OffMedian { by_ms } => {
                write!(f, "the wall clock is {by_ms} ms off the members' median")
            }
        }
    }
}

/// The clock of one member as this node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSample {
    /// The member's clock minus this node's, ms.
    pub offset_ms: i64,
    /// How long ago it was taken.
    pub age: Duration,
}

struct Sample<I> {
    clock_ms: u64,
    at: I,
}

struct State<I> {
    last_stamp_ms: u64,
    /// Wall and monotonic clock at the last comparison that found them in step.
    anchor: Option<(u64, I)>,
    samples: BTreeMap<u64, Sample<I>>,
}

/// Hands out stamps that never go back, and refuses to when the clock cannot be trusted.
pub struct StampClock<R: AsyncRuntime> {
    clock: Arc<dyn Clock>,
    bounds: ClockBounds,
    state: Mutex<State<R::Instant>>,
}

impl<R: AsyncRuntime> StampClock<R> {
    /// A guard over `clock`.
    pub fn new(clock: Arc<dyn Clock>, bounds: ClockBounds) -> Self {
        let state = State { last_stamp_ms: 0, anchor: None, samples: BTreeMap::new() };
        StampClock { clock, bounds, state: Mutex::new(state) }
    }

    /// The wall clock as it is, ms: for heartbeats and projections, not for stamps.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Takes note of a member's clock, read between `sent` and now.
    pub fn observe(&self, member: u64, clock_ms: u64, sent: R::Instant) {
        let now = R::Instant::now();
        // Half a round trip earlier is the best guess of when it was read.
        let at = sent + now.saturating_duration_since(sent) / 2;
        self.observe_at(member, clock_ms, at);
    }

    /// Takes note of a member's clock as it was at `at`, unless a newer sample is known.
    pub fn observe_at(&self, member: u64, clock_ms: u64, at: R::Instant) {
        let mut state = self.lock();
        if state.samples.get(&member).is_none_or(|known| known.at <= at) {
            state.samples.insert(member, Sample { clock_ms, at });
        }
    }

    /// Forgets every sample and the anchor: a new term of leadership starts from fresh ones.
    pub fn reset(&self) {
        let mut state = self.lock();
        state.samples.clear();
        state.anchor = None;
    }

    /// The members' clocks that are known, by node id.
    pub fn samples(&self) -> BTreeMap<u64, ClockSample> {
        let (now, now_ms) = (R::Instant::now(), self.clock.now_ms());
        let sample = |s: &Sample<R::Instant>| {
            let age = now.saturating_duration_since(s.at);
            ClockSample { offset_ms: difference(carried(s.clock_ms, age), now_ms), age }
        };
        self.lock().samples.iter().map(|(id, s)| (*id, sample(s))).collect()
    }

    /// This node's clock minus the median of the voters' (its own included), ms.
    ///
    /// # Errors
    /// [`ClockFault::NoQuorum`] if fewer than a majority of `voters` have a fresh sample.
    pub fn off_median_ms(&self, me: u64, voters: &[u64]) -> Result<i64, ClockFault> {
        self.off_median(&self.lock(), self.clock.now_ms(), me, voters)
    }

    /// Whether a difference of `by_ms` is more than the bound.
    pub fn is_beyond(&self, by_ms: i64) -> bool {
        by_ms.unsigned_abs() > self.bounds.off_ms_max
    }

    /// A stamp for a new entry: the wall clock, at least the stamp before.
    ///
    /// # Errors
    /// The clock cannot be trusted; nothing is stamped.
    pub fn stamp(&self, me: u64, voters: &[u64]) -> Result<u64, ClockFault> {
        let (now, now_ms) = (R::Instant::now(), self.clock.now_ms());
        let mut state = self.lock();
        if let Some((anchor_ms, at)) = state.anchor {
            let by_ms = difference(now_ms, carried(anchor_ms, now.saturating_duration_since(at)));
            if self.is_beyond(by_ms) {
                // Said once: from here on the new course counts, if the median agrees with it.
                state.anchor = Some((now_ms, now));
                return Err(ClockFault::Stepped { by_ms });
            }
        }
        let by_ms = self.off_median(&state, now_ms, me, voters)?;
        if self.is_beyond(by_ms) {
            return Err(ClockFault::OffMedian { by_ms });
        }
        state.anchor = Some((now_ms, now));
        state.last_stamp_ms = state.last_stamp_ms.max(now_ms);
        Ok(state.last_stamp_ms)
    }

    fn off_median(
        &self,
        state: &State<R::Instant>,
        now_ms: u64,
        me: u64,
        voters: &[u64],
    ) -> Result<i64, ClockFault> {
        let now = R::Instant::now();
        let fresh = |id: &u64| {
            let sample = state.samples.get(id).filter(|_| *id != me)?;
            let age = now.saturating_duration_since(sample.at);
            (age <= self.bounds.sample_age_max).then(|| carried(sample.clock_ms, age))
        };
        let mut clocks: Vec<u64> = voters.iter().filter_map(fresh).collect();
        clocks.push(now_ms);
        let needed = voters.len() / 2 + 1;
        if clocks.len() < needed {
            return Err(ClockFault::NoQuorum { known: clocks.len(), needed });
        }
        clocks.sort_unstable();
        let (low, high) = (clocks[(clocks.len() - 1) / 2], clocks[clocks.len() / 2]);
        Ok(difference(now_ms, low + (high - low) / 2))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State<R::Instant>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn carried(clock_ms: u64, age: Duration) -> u64 {
    clock_ms.saturating_add(age.as_millis() as u64)
}

fn difference(a: u64, b: u64) -> i64 {
    let clamp = |d: u64| i64::try_from(d).unwrap_or(i64::MAX);
    if a >= b { clamp(a - b) } else { -clamp(b - a) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicU64, Ordering};

    use openraft_rt_sim::SimRuntime;

    use super::*;

    struct HandClock(AtomicU64);

    impl Clock for HandClock {
        fn now_ms(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }
    }

    const BOUNDS: ClockBounds = ClockBounds { off_ms_max: 500, sample_age_max: Duration::from_millis(400) };
    type Now = <SimRuntime as AsyncRuntime>::Instant;

    fn guard(at_ms: u64) -> (Arc<HandClock>, StampClock<SimRuntime>) {
        let clock = Arc::new(HandClock(AtomicU64::new(at_ms)));
        (clock.clone(), StampClock::new(clock, BOUNDS))
    }

    fn run(test: impl Future<Output = ()>) {
        SimRuntime::with_seed(1).block_on(test);
    }

    #[test]
    fn nothing_is_stamped_without_a_quorum_of_fresh_clocks() {
        run(async {
            let (_, guard) = guard(10_000);
            assert_eq!(guard.stamp(1, &[1, 2, 3]), Err(ClockFault::NoQuorum { known: 1, needed: 2 }));
            guard.observe(2, 10_010, Now::now());
            assert_eq!(guard.stamp(1, &[1, 2, 3]), Ok(10_000));
            SimRuntime::sleep(Duration::from_millis(401)).await;
            assert_eq!(guard.stamp(1, &[1, 2, 3]), Err(ClockFault::NoQuorum { known: 1, needed: 2 }));
            // A node that is alone is its own quorum.
            assert!(guard.stamp(1, &[1]).is_ok_and(|ms| ms == 10_000));
        });
    }

    #[test]
    fn a_step_of_the_wall_clock_is_seen_either_way_and_said_once() {
        run(async {
            for step in [-11_000i64, 11_000] {
                let (clock, guard) = guard(100_000);
                guard.observe(2, 100_000, Now::now());
                guard.observe(3, 100_000, Now::now());
                assert_eq!(guard.stamp(1, &[1, 2, 3]), Ok(100_000));
                clock.0.store(100_000u64.saturating_add_signed(step), Ordering::SeqCst);
                assert_eq!(guard.stamp(1, &[1, 2, 3]), Err(ClockFault::Stepped { by_ms: step }));
                // Afterwards it is the median that says no.
                assert_eq!(guard.stamp(1, &[1, 2, 3]), Err(ClockFault::OffMedian { by_ms: step }));
            }
        });
    }

    #[test]
    fn a_clock_off_the_median_does_not_stamp_and_one_bad_member_does_not_matter() {
        run(async {
            let (_, guard) = guard(50_000);
            guard.observe(2, 50_100, Now::now());
            guard.observe(3, 9_000_000, Now::now());
            assert_eq!(guard.stamp(1, &[1, 2, 3]), Ok(50_000));
            guard.observe(2, 52_000, Now::now());
            assert_eq!(guard.stamp(1, &[1, 2, 3]), Err(ClockFault::OffMedian { by_ms: -2_000 }));
        });
    }

    #[test]
    fn stamps_never_go_back() {
        run(async {
            let (clock, guard) = guard(50_000);
            assert_eq!(guard.stamp(1, &[1]), Ok(50_000));
            clock.0.store(49_700, Ordering::SeqCst);
            assert_eq!(guard.stamp(1, &[1]), Ok(50_000));
            SimRuntime::sleep(Duration::from_millis(600)).await;
            clock.0.store(50_300, Ordering::SeqCst);
            assert_eq!(guard.stamp(1, &[1]), Ok(50_300));
        });
    }

    #[test]
    fn samples_age_with_the_monotonic_clock() {
        run(async {
            let (clock, guard) = guard(50_000);
            guard.observe(2, 50_050, Now::now());
            SimRuntime::sleep(Duration::from_millis(300)).await;
            clock.0.store(50_300, Ordering::SeqCst);
            let sample = guard.samples()[&2];
            assert_eq!((sample.offset_ms, sample.age), (50, Duration::from_millis(300)));
        });
    }
}
