//! How long the service was away after a fault: from the fault to the first write acknowledged
//! that was called after it.

use crate::history::{Operation, Outcome};

/// For each fault instant (µs), the time to recovery in ms; a fault that nothing was
/// acknowledged after is left out.
pub fn recovery_ms(faults_us: &[u64], operations: &[Operation]) -> Vec<u64> {
    let mut writes: Vec<(u64, u64)> = operations
        .iter()
        .filter(|operation| operation.outcome == Outcome::Ok && operation.call.is_write())
        .filter_map(|operation| Some((operation.invoked_us, operation.returned_us?)))
        .collect();
    writes.sort_unstable();
    // The earliest return among the calls from here on.
    let mut earliest = u64::MAX;
    let mut from_here: Vec<u64> = vec![0; writes.len()];
    for at in (0..writes.len()).rev() {
        earliest = earliest.min(writes[at].1);
        from_here[at] = earliest;
    }
    faults_us
        .iter()
        .filter_map(|fault| {
            let at = writes.partition_point(|(invoked, _)| invoked < fault);
            Some((from_here.get(at)? - fault) / 1000)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn only_writes_called_after_the_fault_count() {
        let operations = [
            fixture::reserve(1, 0, 2_000_000, 1),
            fixture::reserve(2, 1_500_000, 4_000_000, 2),
            fixture::reserve(3, 2_000_000, 3_000_000, 3),
            fixture::get(4, 1_000_000, 1_100_000, 1),
        ];
        assert_eq!(recovery_ms(&[1_000_000, 5_000_000], &operations), vec![2_000]);
    }
}
