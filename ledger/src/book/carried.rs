//! C9 in full: between the accounts of a lineage, what was carried forward is what arrived.

use crate::query::{ViolatedRule, Violation};
use crate::record::{Account, Lineage};

/// Violations of C9 among the accounts of a lineage that are still there, by number, the current one last.
pub(crate) fn check_carried(row: &Lineage, line: &[&Account]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut add = |account: &Account, detail: String| {
        let place = format!("{} account {}", row.key, account.number);
        found.push(Violation { rule: ViolatedRule::C9, place, detail });
    };
    for pair in line.windows(2).filter(|pair| pair[0].number + 1 == pair[1].number) {
        // Within an epoch, what moved in later was carried forward too.
        let same_epoch = pair[0].epoch_start_ms == pair[1].epoch_start_ms;
        let (carried, opening) = (pair[0].columns.carried_forward, pair[1].columns.opening);
        if opening > carried || (opening < carried && !same_epoch) {
            add(pair[1], format!("it opened with {opening}, carried to it were {carried}"));
        }
    }
    let is_closed = |account: &Account| account.number != row.current.number;
    for account in line.iter().filter(|account| is_closed(account) && account.columns.available > 0) {
        add(account, format!("it is closed and has {} available", account.columns.available));
    }
    let of_epoch: Vec<&Account> =
        line.iter().copied().filter(|account| row.is_of_epoch(account.number)).collect();
    let complete = of_epoch.len() as u64 == u64::from(row.current.number - row.epoch_first) + 1;
    if complete && !of_epoch.is_empty() {
        let forward: u128 = of_epoch.iter().map(|account| account.columns.carried_forward).sum();
        let opened: u128 = of_epoch[1..].iter().map(|account| account.columns.opening).sum();
        let moved: u128 = of_epoch.iter().map(|account| account.columns.moved_in).sum();
        if forward != opened + moved {
            let detail = format!(
                "{forward} were carried forward in its epoch, {opened} opened accounts and {moved} moved in"
            );
            add(&row.current, detail);
        }
    }
    found
}
