//! Pauses that double, with full jitter on their upper half.

use crate::limits::{BACKOFF_FIRST_MS, BACKOFF_MAX_MS};

/// The pauses of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    pauses: u32,
}

impl Backoff {
    /// The next pause, ms: between half and all of a bound that doubles up to its maximum.
    /// `random` is any number; it spreads callers that failed at the same moment.
    pub fn next_ms(&mut self, random: u64) -> u64 {
        let bound = BACKOFF_FIRST_MS.saturating_mul(1 << self.pauses.min(16)).min(BACKOFF_MAX_MS);
        self.pauses = self.pauses.saturating_add(1);
        bound / 2 + random % (bound - bound / 2 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_bound_and_stay_in_their_half() {
        let mut backoff = Backoff::default();
        let mut bound = BACKOFF_FIRST_MS;
        for round in 0..100 {
            let pause = backoff.next_ms(round * 7_919);
            assert!((bound / 2..=bound).contains(&pause), "{pause} in round {round}");
            bound = (bound * 2).min(BACKOFF_MAX_MS);
        }
    }
}
