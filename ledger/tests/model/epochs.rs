//! The calendars of the tests. Real ones come from time zone data; the book takes any increasing bounds,
//! so days here last one to three minutes and months three days and are all of different lengths.

use std::sync::Arc;

use holdfast_ledger::command::EpochBounds;
use holdfast_ledger::plan::{Calendar, Period};

/// Where the scripts begin: not on a bound of anything.
pub const BEGIN_MS: u64 = 1_800_000_003_217;

const FIRST_BOUND_MS: u64 = BEGIN_MS - 500_000;

/// How many days make an epoch.
fn stride(calendar: &Calendar) -> u64 {
    if matches!(calendar.period, Period::Month(_)) { 3 } else { 1 }
}

/// The bound before day `at`.
fn bound(at: u64) -> u64 {
    FIRST_BOUND_MS + at * 120_000 + (at * 7_919) % 50_021
}

/// Start and end of the epoch that holds an instant, by scanning.
pub fn epoch_at(calendar: &Calendar, ms: u64) -> (u64, u64) {
    match calendar.period {
        Period::Seconds(seconds) => {
            let length = u64::from(seconds) * 1_000;
            (ms - ms % length, ms - ms % length + length)
        }
        Period::Lifetime => (0, u64::MAX),
        _ => {
            let mut at = ms.saturating_sub(FIRST_BOUND_MS + 50_021) / 120_000;
            while bound(at + 1) <= ms {
                at += 1;
            }
            let stride = stride(calendar);
            let first = at - at % stride;
            (bound(first), bound(first + stride))
        }
    }
}

/// The bounds that a leader would add so that a calendar is known beyond an instant.
pub fn bounds_until(calendar: &Arc<Calendar>, known_until_ms: Option<u64>, ms: u64) -> EpochBounds {
    // Continues a list by repeating its last epoch's start, whose end is known already.
    let stride = stride(calendar);
    let continued = known_until_ms
        .and_then(|known| (0..).step_by(stride as usize).find(|at| bound(*at + stride) >= known));
    let mut at = continued.unwrap_or(0);
    let mut bounds_ms = vec![bound(at)];
    while bound(at) <= ms + 400_000 {
        at += stride;
        bounds_ms.push(bound(at));
    }
    EpochBounds { calendar: Arc::clone(calendar), bounds_ms }
}
