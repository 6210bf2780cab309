//! The tally's balances against what a book shows, and its sums against the book's columns.

use holdfast_ledger::answer::State;
use holdfast_ledger::plan::Level;
use holdfast_ledger::query::{AuditReport, QuotaLine};
use holdfast_ledger::record::Lane;
use holdfast_ledger::{Book, Unit};

use super::lineages::Lineage;
use super::{Balance, Tally};
use crate::interleave::facts::Rule;
use crate::interleave::found::Kind;
use crate::interleave::plans::{TENANT_IDS, USER_IDS};

impl Tally {
    /// Compares every balance with the quotas that a book at the tally's revision shows.
    pub fn compare_quotas(&mut self, book: &Book) {
        let clock_ms = self.clock_ms;
        let mut differences = Vec::new();
        let mut compare = |lines: &[QuotaLine], tenant: Option<usize>, user: Option<usize>| {
            for line in lines {
                let of_user = user.filter(|_| line.level == Level::User);
                let row = self.lineages.iter().map(|(_, row)| row).find(|row| {
                    row.limit == line.limit.as_str() && row.tenant == tenant && row.user == of_user
                });
                if let Some((row, balance)) =
                    row.and_then(|row| row.balance.as_ref().map(|found| (row, found)))
                {
                    differences.extend(differ(row, balance, line));
                }
            }
        };
        compare(&book.quota_global(Lane::Enforced, clock_ms), None, None);
        for (tenant, tenant_id) in TENANT_IDS.iter().enumerate() {
            for (user, user_id) in USER_IDS.iter().enumerate() {
                compare(&book.quota(tenant_id, Some(user_id), clock_ms), Some(tenant), Some(user));
            }
        }
        for (kind, detail) in differences {
            self.find(kind, || detail);
        }
        let frozen = book.freezes().count();
        if frozen != self.frozen.len() {
            let counted = self.frozen.len();
            self.find(Kind::Lifecycle, || format!("the book has {frozen} freezes, {counted} were counted"));
        }
    }

    /// Compares a full audit, and what archived accounts had spent, with the sums of all holds and settlements.
    pub fn compare_sums(&mut self, audit: &AuditReport, archived_spent: &[u128; 4]) {
        for violation in &audit.violations {
            self.find(Kind::Conservation, || violation.to_string());
        }
        let (mut held, mut spent) = ([0u128; 4], [0u128; 4]);
        for life in self.known.values().filter_map(|known| known.life.as_ref()) {
            for leg in &life.legs {
                let limit = self.lineages.at(leg.place).limit;
                let limit = life.facts.limits.iter().find(|known| known.id == limit);
                let unit = limit.map_or(Unit::Requests, |limit| limit.unit);
                match life.state {
                    state if state.is_open() => held[unit as usize] += u128::from(leg.amount),
                    State::Settled | State::SettledWithDebt if unit != Unit::Slots => {
                        spent[unit as usize] += u128::from(life.spent.get(unit).unwrap_or(0));
                    }
                    _ => {}
                }
            }
        }
        for (spent, charged) in spent.iter_mut().zip(self.charged) {
            *spent += charged;
        }
        for unit in Unit::ALL {
            let place = unit as usize;
            let booked = audit.sums[place].spent + archived_spent[place];
            // A bucket that is full again is dropped with what was spent of it.
            let spent_fits =
                if self.has_buckets(unit) { booked <= spent[place] } else { booked == spent[place] };
            if !spent_fits || audit.sums[place].reserved != held[place] {
                let (book_held, held, spent) = (audit.sums[place].reserved, held[place], spent[place]);
                self.find(Kind::Conservation, || {
                    format!("{unit}: the book holds {book_held} and has spent {booked}, counted were {held} and {spent}")
                });
            }
        }
    }
}

impl Tally {
    fn has_buckets(&self, unit: Unit) -> bool {
        let mut limits = self.family.plans.iter().flat_map(|plan| &plan.facts.limits);
        limits.any(|limit| limit.unit == unit && matches!(limit.rule, Rule::Bucket { .. }))
    }
}

/// What a line says that the balance does not.
fn differ(row: &Lineage, balance: &Balance, line: &QuotaLine) -> Option<(Kind, String)> {
    let unlimited = balance.is_unlimited();
    let available = (!unlimited).then(|| balance.available());
    let shown = (line.remaining.map(i128::from), i128::from(line.held), i128::from(line.debt));
    let counted = (available, balance.held, balance.debt);
    if shown == counted {
        return None;
    }
    let kind = if shown.2 < counted.2 { Kind::ForgottenDebt } else { Kind::Conservation };
    let detail = format!(
        "{} of tenant {:?} user {:?}: the book shows (remaining, held, debt) {shown:?}, counted were {counted:?}",
        row.limit, row.tenant, row.user
    );
    Some((kind, detail))
}
