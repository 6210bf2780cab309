//! The account equation, checked on every account that a command touched, after every command, in every build.

use crate::book::Book;
use crate::book::lineage::operated::Bucket;
use crate::query::{ViolatedRule, Violation};
use crate::record::{Columns, Lineage};

/// Accounts that the running command touched, as they were before it.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    lineages: Vec<TouchedLineage>,
    /// Of each lineage, the columns of its current account. Apart, because every touch looks through the slots.
    before: Vec<Columns>,
    closed: Vec<(u32, Columns)>,
}

#[derive(Debug)]
struct TouchedLineage {
    slot: u32,
    number: u32,
    indebted: bool,
    wakes: bool,
}

impl Book {
    /// Notes a lineage that a command is about to touch.
    pub(crate) fn note_lineage(&mut self, slot: u32) {
        let touched = &mut self.derived.touched;
        if touched.lineages.iter().any(|known| known.slot == slot) {
            return;
        }
        let row = self.lineages.get(slot);
        let (number, indebted, wakes) = (row.current.number, row.debt > 0, row.may_wake());
        touched.lineages.push(TouchedLineage { slot, number, indebted, wakes });
        // A slice, so that the columns are copied once.
        touched.before.extend_from_slice(std::slice::from_ref(&row.current.columns));
    }

    /// Notes a lineage that a command opened.
    pub(crate) fn note_opened(&mut self, slot: u32) {
        let number = self.lineages.get(slot).current.number;
        self.derived.touched.lineages.push(TouchedLineage { slot, number, indebted: false, wakes: false });
        self.derived.touched.before.push(Columns::default());
    }

    pub(crate) fn note_closed(&mut self, slot: u32) {
        let before = self.closed.get(slot).account.columns;
        self.derived.touched.closed.push((slot, before));
    }

    /// Checks what was touched since the last call. Panics at a violation: the node stops itself, it never
    /// goes on with a wrong book.
    pub(crate) fn assert_touched(&mut self) {
        let mut touched = std::mem::take(&mut self.derived.touched);
        let fresh = Columns::default();
        for (known, before) in touched.lineages.iter().zip(&touched.before) {
            self.announce_crossings(known.slot);
            let Some(row) = self.lineages.find(known.slot) else {
                self.derived.tally.indebted -= u64::from(known.indebted);
                self.schedule_wake(known.slot);
                continue;
            };
            let after = &row.current.columns;
            let kept = row.current.number == known.number;
            let before = if kept { before } else { &fresh };
            let place = || format!("{} account {}", row.key, row.current.number);
            if let Some(violation) = check_columns(before, after, &place).or_else(|| check_terms(row)) {
                panic!("{violation}");
            }
            self.derived.tally.indebted += u64::from(row.debt > 0);
            self.derived.tally.indebted -= u64::from(known.indebted);
            let held = &mut self.derived.tally.held_on_accounts[row.unit as usize];
            *held = *held + after.reserved - before.reserved;
            let may_wake = known.wakes || row.may_wake();
            if (row.debt > 0) != (row.debt_generation > 0) {
                self.date_debt(known.slot);
            }
            if may_wake {
                self.schedule_wake(known.slot);
            }
        }
        touched.lineages.clear();
        touched.before.clear();
        for (slot, before) in touched.closed.drain(..) {
            let Some(row) = self.closed.find(slot) else { continue };
            let lineage = self.lineages.get(row.lineage);
            let after = &row.account.columns;
            let place = || format!("{} closed account {}", lineage.key, row.account.number);
            if let Some(violation) = check_columns(&before, after, &place) {
                panic!("{violation}");
            }
            let held = &mut self.derived.tally.held_on_accounts[lineage.unit as usize];
            *held = *held + after.reserved - before.reserved;
        }
        self.derived.touched = touched;
        let tally = &self.derived.tally;
        assert!(
            tally.held_on_accounts == tally.held_by_legs,
            "C4: accounts hold {:?}, open reservations {:?} (requests, tokens, slots, micros)",
            tally.held_on_accounts,
            tally.held_by_legs
        );
    }
}

/// C1 and C3.
fn check_columns(before: &Columns, after: &Columns, place: &dyn Fn() -> String) -> Option<Violation> {
    if are_plainly_right(before, after) { None } else { check_columns_in_full(before, after, place) }
}

/// Apart, so that the short way does not keep every column at hand for it.
#[cold]
#[inline(never)]
fn check_columns_in_full(before: &Columns, after: &Columns, place: &dyn Fn() -> String) -> Option<Violation> {
    check_growth(before, after, place).or_else(|| check_equation(after, place))
}

/// Whether C1 and C3 hold, if that can be told from the columns that move every day and their low halves, as it nearly
/// always can. False says nothing.
fn are_plainly_right(before: &Columns, after: &Columns) -> bool {
    let any_of = |columns: &[u128]| columns.iter().fold(0, |any, column| any | column);
    let rare = any_of(&before.rare()) | any_of(&after.rare());
    let usual = any_of(&before.usual()) | any_of(&after.usual());
    // Sums of four such numbers are of 64 bits too.
    if rare != 0 || usual >= 1 << 62 {
        return false;
    }
    let [refilled, granted, available, reserved, spent, forfeited] =
        after.usual().map(|column| column as u64);
    let [refilled_before, granted_before, _, _, spent_before, forfeited_before] =
        before.usual().map(|column| column as u64);
    (refilled >= refilled_before)
        & (granted >= granted_before)
        & (spent >= spent_before)
        & (forfeited >= forfeited_before)
        & (refilled + granted == available + reserved + spent + forfeited)
}

impl Book {
    /// Keeps the generation that a debt dates from: none once it is repaid, the one in force for what no
    /// settlement made.
    fn date_debt(&mut self, slot: u32) {
        let generation = self.header.generation;
        let row = self.lineages.get_mut(slot);
        row.debt_generation = if row.debt > 0 { generation } else { 0 };
    }
}

/// C1: nothing comes from nowhere and nothing is lost.
pub(crate) fn check_equation(columns: &Columns, place: &dyn Fn() -> String) -> Option<Violation> {
    let (sources, uses) = (columns.sources(), columns.uses());
    (sources != uses).then(|| Violation {
        rule: ViolatedRule::C1,
        place: place(),
        detail: format!("{sources} came in, {uses} are accounted for: {}", show(columns)),
    })
}

/// C3: every column but `available` and `reserved` only grows.
fn check_growth(before: &Columns, after: &Columns, place: &dyn Fn() -> String) -> Option<Violation> {
    // Without branches: all of them are true all the time.
    let grew = (after.opening >= before.opening)
        & (after.refilled >= before.refilled)
        & (after.granted >= before.granted)
        & (after.corrected >= before.corrected)
        & (after.shards_back >= before.shards_back)
        & (after.moved_in >= before.moved_in)
        & (after.rule_raise >= before.rule_raise)
        & (after.forgiven >= before.forgiven)
        & (after.overdraft_issued >= before.overdraft_issued)
        & (after.spent >= before.spent)
        & (after.to_shards >= before.to_shards)
        & (after.carried_forward >= before.carried_forward)
        & (after.forfeited >= before.forfeited)
        & (after.overdraft_repaid >= before.overdraft_repaid);
    if grew { None } else { find_shrunk(before, after, place) }
}

fn find_shrunk(before: &Columns, after: &Columns, place: &dyn Fn() -> String) -> Option<Violation> {
    let before = before.named().into_iter().zip(after.named());
    let mut pairs = before.filter(|((name, _), _)| !matches!(*name, "available" | "reserved"));
    let ((name, before), (_, after)) = pairs.find(|((_, before), (_, after))| after < before)?;
    Some(Violation {
        rule: ViolatedRule::C3,
        place: place(),
        detail: format!("{name} shrank from {before} to {after}"),
    })
}

/// C1, C6, C7 and the cap of C8 on a lineage's current account.
pub(crate) fn check_lineage(row: &Lineage) -> Option<Violation> {
    let place = || format!("{} account {}", row.key, row.current.number);
    check_equation(&row.current.columns, &place).or_else(|| check_terms(row))
}

/// C6, C7 and the cap of C8.
fn check_terms(row: &Lineage) -> Option<Violation> {
    let available = row.current.columns.available;
    let place = || format!("{} account {}", row.key, row.current.number);
    let found = |rule, detail| Some(Violation { rule, place: place(), detail });
    if row.debt > 0 && available > 0 {
        let detail = format!("debt {} and available {available}", row.debt);
        return found(ViolatedRule::C6, detail);
    }
    match row.bucket() {
        Some(Bucket { burst, .. }) if available > u128::from(burst) => {
            found(ViolatedRule::C8, format!("available {available} is over the burst {burst}"))
        }
        Some(_) => None,
        None => match row.target().unwrap_or(0) {
            target if target == available => None,
            target => {
                let (used, debt) = (row.used(), row.epoch_debt());
                let allowance = row.allowance();
                let detail = format!(
                    "available {available}, but allowance {allowance:?}, used {used}, epoch debt {debt} give {target}"
                );
                found(ViolatedRule::C7, detail)
            }
        },
    }
}

pub(crate) fn show(columns: &Columns) -> String {
    let parts = columns.named().into_iter().filter(|(_, amount)| *amount > 0);
    parts.map(|(name, amount)| format!("{name} {amount}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short way finds nothing right that the long way finds wrong, and does know what is right every day.
    #[test]
    fn the_plain_test_of_columns_agrees_with_the_full_one() {
        let held = Columns { refilled: 60, granted: 40, available: 70, reserved: 30, ..Columns::default() };
        let set: [fn(&mut Columns) -> &mut u128; 16] = [
            |columns| &mut columns.opening,
            |columns| &mut columns.refilled,
            |columns| &mut columns.granted,
            |columns| &mut columns.corrected,
            |columns| &mut columns.shards_back,
            |columns| &mut columns.moved_in,
            |columns| &mut columns.rule_raise,
            |columns| &mut columns.forgiven,
            |columns| &mut columns.overdraft_issued,
            |columns| &mut columns.available,
            |columns| &mut columns.reserved,
            |columns| &mut columns.spent,
            |columns| &mut columns.to_shards,
            |columns| &mut columns.carried_forward,
            |columns| &mut columns.forfeited,
            |columns| &mut columns.overdraft_repaid,
        ];
        let amounts = [0, 1, 29, 31, 1 << 61, 1 << 62, 1 << 63, 1 << 64, (1 << 64) + 30, 1 << 100];
        let place = String::new;
        let right =
            |before: &Columns, after: &Columns| check_columns_in_full(before, after, &place).is_none();
        let mut plain = 0;
        for (first, second) in (0..16).flat_map(|first| (0..16).map(move |second| (first, second))) {
            for (one, other) in amounts.iter().flat_map(|one| amounts.iter().map(move |other| (*one, *other)))
            {
                let mut changed = held;
                *set[first](&mut changed) += one;
                let shrunk = changed;
                *set[second](&mut changed) += other;
                for (before, after) in
                    [(held, changed), (changed, held), (shrunk, changed), (changed, shrunk)]
                {
                    let plainly = are_plainly_right(&before, &after);
                    assert!(!plainly || right(&before, &after), "{before:?} {after:?}");
                    plain += u32::from(plainly);
                }
            }
        }
        assert!(plain > 100, "{plain}");
        let spent = Columns { reserved: 10, spent: 15, forfeited: 5, ..held };
        assert!(are_plainly_right(&held, &spent) && !are_plainly_right(&spent, &held));
    }
}
