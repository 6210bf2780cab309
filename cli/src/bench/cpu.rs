//! CPU time of local processes, from /proc.

use std::collections::BTreeMap;

/// Kernel ticks a second in /proc/PID/stat: USER_HZ, which Linux fixes at 100 for every architecture we build for.
const TICKS_PER_S: u64 = 100;

/// A process whose CPU time is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// What the report calls it, for example `node-1`.
    pub name: String,
    /// Its id on this machine.
    pub pid: u32,
}

/// CPU microseconds of each process so far; those that cannot be read are left out.
pub fn sample(processes: &[Process]) -> BTreeMap<String, u64> {
    processes
        .iter()
        .filter_map(|process| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid)).ok()?;
            Some((process.name.clone(), cpu_us(&stat)?))
        })
        .collect()
}

/// CPU microseconds for each of `operations`, by process.
pub fn per_operation(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
    operations: u64,
) -> BTreeMap<String, f64> {
    after
        .iter()
        .filter_map(|(name, after)| {
            let used = after.checked_sub(*before.get(name)?)?;
            Some((name.clone(), used as f64 / operations.max(1) as f64))
        })
        .collect()
}

/// User and system time. The second field is the program's name in parentheses and may hold anything,
/// so that counting starts behind the last parenthesis.
fn cpu_us(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) * (1_000_000 / TICKS_PER_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 5 0 0";
        assert_eq!(cpu_us(stat), Some(3_000_000));
        assert_eq!(cpu_us("7 (a"), None);
    }

    #[test]
    fn our_own_process_can_be_read() {
        let own = Process { name: "self".into(), pid: std::process::id() };
        assert!(sample(&[own]).contains_key("self"));
        assert!(sample(&[Process { name: "none".into(), pid: u32::MAX }]).is_empty());
    }
}
