//! What the callers of a load saw.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// Latencies are kept to three digits, from one microsecond to an hour: longer than any deadline.
const LATENCY_US_MAX: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

/// Counts of one caller, or the sum of many. What began in the measured time is counted; of rates, what ended in it too.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Commands that were answered as they should be, in the measured time.
    pub operations: u64,
    /// Whole rounds of the mix.
    pub rounds: u64,
    /// Requests of a storm that were refused, as they should be.
    pub refused: u64,
    /// What went wrong, by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// Microseconds from call to answer or error, for each command that began in the measured time: whoever waits over
    /// its end, or in vain, has waited too.
    pub latency_us: Histogram<u64>,
}

impl Default for Tally {
    fn default() -> Self {
        Tally { operations: 0, rounds: 0, refused: 0, errors: BTreeMap::new(), latency_us: new_histogram() }
    }
}

impl Tally {
    /// One caller has waited so long for a command.
    pub fn waited(&mut self, latency: std::time::Duration) {
        self.latency_us.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    /// One command failed.
    pub fn failed(&mut self, kind: &'static str) {
        *self.errors.entry(kind).or_default() += 1;
    }

    /// Adds another caller's counts.
    pub fn merge(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.rounds += other.rounds;
        self.refused += other.refused;
        for (kind, count) in &other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        self.latency_us += &other.latency_us;
    }

    /// A quantile of the latency in milliseconds.
    pub fn latency_ms(&self, quantile: f64) -> f64 {
        self.latency_us.value_at_quantile(quantile) as f64 / 1_000.0
    }
}

fn new_histogram() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, LATENCY_US_MAX, DIGITS) {
        Ok(histogram) => histogram,
        Err(e) => unreachable!("the bounds are constants that hdrhistogram accepts: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn sums_of_callers() {
        let mut total = Tally::default();
        for ms in [1, 2, 3] {
            let mut caller = Tally { operations: 1, rounds: 1, ..Tally::default() };
            caller.waited(Duration::from_millis(ms));
            caller.failed("unknown");
            total.merge(&caller);
        }
        assert_eq!((total.operations, total.rounds, total.errors["unknown"]), (3, 3, 3));
        assert!((total.latency_ms(0.5) - 2.0).abs() < 0.01);
        assert!((total.latency_ms(1.0) - 3.0).abs() < 0.01);
    }
}
