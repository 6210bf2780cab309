//! The account equation, checked on every account that a command touched, after every command, in every build.

use crate::book::Book;
use crate::plan::Rule;
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
}

impl Book {
    /// Notes a lineage that a command is about to touch.
    pub(crate) fn note_lineage(&mut self, slot: u32) {
        let touched = &mut self.derived.touched;
        if touched.lineages.iter().any(|known| known.slot == slot) {
            return;
        }
        let row = self.lineages.get(slot);
        let (number, indebted) = (row.current.number, row.debt > 0);
        touched.lineages.push(TouchedLineage { slot, number, indebted });
        // A slice, so that the columns are copied once.
        touched.before.extend_from_slice(std::slice::from_ref(&row.current.columns));
    }

    /// Notes a lineage that a command opened.
    pub(crate) fn note_opened(&mut self, slot: u32) {
        let number = self.lineages.get(slot).current.number;
        self.derived.touched.lineages.push(TouchedLineage { slot, number, indebted: false });
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
                continue;
            };
            let after = &row.current.columns;
            let kept = row.current.number == known.number;
            let before = if kept { before } else { &fresh };
            let place = || format!("{} account {}", row.key, row.current.number);
            if let Some(violation) = check_growth(before, after, &place).or_else(|| check_lineage(row)) {
                panic!("{violation}");
            }
            self.derived.tally.indebted += u64::from(row.debt > 0);
            self.derived.tally.indebted -= u64::from(known.indebted);
            let held = &mut self.derived.tally.held_on_accounts[row.unit as usize];
            *held = *held + after.reserved - before.reserved;
        }
        touched.lineages.clear();
        touched.before.clear();
        for (slot, before) in touched.closed.drain(..) {
            let Some(row) = self.closed.find(slot) else { continue };
            let lineage = self.lineages.get(row.lineage);
            let after = &row.account.columns;
            let place = || format!("{} closed account {}", lineage.key, row.account.number);
            if let Some(violation) =
                check_growth(&before, after, &place).or_else(|| check_equation(after, &place))
            {
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
    let columns = &row.current.columns;
    let place = || format!("{} account {}", row.key, row.current.number);
    if let Some(violation) = check_equation(columns, &place) {
        return Some(violation);
    }
    let available = columns.available;
    let found = |rule, detail| Some(Violation { rule, place: place(), detail });
    if row.debt > 0 && available > 0 {
        let detail = format!("debt {} and available {available}", row.debt);
        return found(ViolatedRule::C6, detail);
    }
    match &row.rule {
        Some(Rule::Bucket { burst, .. }) if available > u128::from(*burst) => {
            found(ViolatedRule::C8, format!("available {available} is over the burst {burst}"))
        }
        Some(Rule::Bucket { .. }) => None,
        _ => match row.target().unwrap_or(0) {
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
