//! One lineage: its columns, its sums, and what its rule gives.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::book::bytes::{RowBytes, pair};
use crate::book::table::Row;
use crate::event::{EventKind, Statement};
use crate::ids::{ModelName, RegionName, RouteName, TenantId, UserId};
use crate::plan::{Ladder, Rule};
use crate::record::{Account, ClosedAccount, Columns, Lane, LimitKind, Lineage, LineageKey};

pub(crate) mod adjust;
pub(crate) mod booking;
pub(crate) mod change;
pub(crate) mod credit;
pub(crate) mod operated;
pub(crate) mod roll;

/// What a replay or a booking leaves for the book to put away.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    /// Events in order.
    pub(crate) events: Vec<EventKind>,
    /// Accounts that closed and that reservations still refer to.
    pub(crate) closed: SmallVec<[Account; 1]>,
    /// Statements of accounts that were archived.
    pub(crate) statements: Vec<Statement>,
}

/// What holds for a lineage under one generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) rule: Rule,
    pub(crate) kind: LimitKind,
    pub(crate) ladder: Option<Ladder>,
    pub(crate) overdraft_max: Option<u64>,
}

/// Takes an amount off a column. An underflow is a bug: the node must stop rather than go on with a wrong book.
pub(crate) fn take(column: &mut u128, amount: u128, name: &str) {
    match column.checked_sub(amount) {
        Some(rest) => *column = rest,
        None => panic!("C2: column {name} holds {column}, {amount} were to be taken"),
    }
}

impl Columns {
    /// The left side of C1.
    pub(crate) fn sources(&self) -> u128 {
        self.opening
            + self.refilled
            + self.granted
            + self.corrected
            + self.shards_back
            + self.moved_in
            + self.rule_raise
            + self.forgiven
            + self.overdraft_issued
    }

    /// The right side of C1.
    pub(crate) fn uses(&self) -> u128 {
        self.available
            + self.reserved
            + self.spent
            + self.to_shards
            + self.carried_forward
            + self.forfeited
            + self.overdraft_repaid
    }

    /// The columns that move every day.
    pub(crate) fn usual(&self) -> [u128; 6] {
        [self.refilled, self.granted, self.available, self.reserved, self.spent, self.forfeited]
    }

    /// The others, which are nearly always all 0.
    pub(crate) fn rare(&self) -> [u128; 10] {
        [
            self.opening,
            self.corrected,
            self.shards_back,
            self.moved_in,
            self.rule_raise,
            self.forgiven,
            self.overdraft_issued,
            self.to_shards,
            self.carried_forward,
            self.overdraft_repaid,
        ]
    }

    /// The account's part of U in C7. Negative where it holds the correction of an earlier account's usage.
    pub(crate) fn used(&self) -> i128 {
        (self.spent + self.reserved + self.to_shards) as i128 - self.corrected as i128
    }

    /// Overdraft issued less repaid.
    pub(crate) fn debt(&self) -> i128 {
        self.overdraft_issued as i128 - self.overdraft_repaid as i128
    }

    /// Whether anything happened on the account besides opening and closing.
    pub(crate) fn is_active(&self) -> bool {
        let moved = [self.spent, self.reserved, self.to_shards, self.corrected, self.moved_in];
        moved.iter().any(|column| *column != 0) || self.overdraft_issued != 0 || self.overdraft_repaid != 0
    }

    /// Adds every column of another account.
    pub(crate) fn add(&mut self, columns: &Columns) {
        self.opening += columns.opening;
        self.refilled += columns.refilled;
        self.granted += columns.granted;
        self.corrected += columns.corrected;
        self.shards_back += columns.shards_back;
        self.moved_in += columns.moved_in;
        self.rule_raise += columns.rule_raise;
        self.forgiven += columns.forgiven;
        self.overdraft_issued += columns.overdraft_issued;
        self.available += columns.available;
        self.reserved += columns.reserved;
        self.spent += columns.spent;
        self.to_shards += columns.to_shards;
        self.carried_forward += columns.carried_forward;
        self.forfeited += columns.forfeited;
        self.overdraft_repaid += columns.overdraft_repaid;
    }

    /// Every column with its name, in one fixed order.
    pub(crate) fn named(&self) -> [(&'static str, u128); 16] {
        [
            ("opening", self.opening),
            ("refilled", self.refilled),
            ("granted", self.granted),
            ("corrected", self.corrected),
            ("shards_back", self.shards_back),
            ("moved_in", self.moved_in),
            ("rule_raise", self.rule_raise),
            ("forgiven", self.forgiven),
            ("overdraft_issued", self.overdraft_issued),
            ("available", self.available),
            ("reserved", self.reserved),
            ("spent", self.spent),
            ("to_shards", self.to_shards),
            ("carried_forward", self.carried_forward),
            ("forfeited", self.forfeited),
            ("overdraft_repaid", self.overdraft_repaid),
        ]
    }
}

impl Lineage {
    /// U of C7: the running epoch's usage over all its accounts. Negative if an operator corrected what a
    /// receipt corrected once more.
    pub(crate) fn used(&self) -> i128 {
        self.past_used + self.current.columns.used()
    }

    /// Dₑ of C7: the running epoch's overdraft issued less repaid.
    pub(crate) fn epoch_debt(&self) -> i128 {
        self.past_debt + self.current.columns.debt()
    }

    /// What the running epoch's accounts hold for open reservations, as far as it is known here: without closed accounts.
    pub(crate) fn held(&self) -> u128 {
        self.current.columns.reserved
    }

    /// A of C7; `None`: unlimited, withdrawn, or a bucket. Negative where operators took more than a rule
    /// that was lowered afterwards gives.
    fn allowance_signed(&self) -> Option<i128> {
        Some((self.limit()? + self.carried_in) as i128 + self.net_grants())
    }

    /// A of C7 as it is shown, at least 0.
    pub(crate) fn allowance(&self) -> Option<u128> {
        Some(u128::try_from(self.allowance_signed()?).unwrap_or(0))
    }

    /// What C7 says the current account's `available` is.
    pub(crate) fn target(&self) -> Option<u128> {
        let target = self.allowance_signed()? - self.used() + self.epoch_debt();
        Some(u128::try_from(target).unwrap_or(0))
    }

    /// How much more the current account may hold.
    pub(crate) fn room(&self) -> u128 {
        let available = self.current.columns.available;
        match self.bucket() {
            Some(bucket) => u128::from(bucket.burst).saturating_sub(available),
            None => self.target().unwrap_or(0).saturating_sub(available),
        }
    }

    /// As much of an amount as may be held now.
    pub(crate) fn most_now(&self, wanted: u64) -> u64 {
        if self.is_unlimited() {
            return wanted;
        }
        u64::try_from(self.current.columns.available).unwrap_or(u64::MAX).min(wanted)
    }

    /// Debt of earlier epochs that is not repaid yet.
    pub(crate) fn earlier_debt(&self) -> u128 {
        let booked_earlier = self.debt as i128 - self.epoch_debt();
        u128::try_from(booked_earlier - self.earlier_repaid as i128).unwrap_or(0)
    }

    pub(crate) fn is_unlimited(&self) -> bool {
        matches!(self.rule, Some(Rule::Unlimited { .. }))
    }

    /// Whether an account of the lineage belongs to the running epoch.
    pub(crate) fn is_of_epoch(&self, account: u32) -> bool {
        account >= self.epoch_first
    }
}

fn write_rule(rule: Option<&Rule>, out: &mut RowBytes) {
    match rule {
        None => out.put_u8(0),
        Some(Rule::Bucket { amount, per_ms, burst }) => {
            out.put_u8(1);
            out.put_words([*amount, *per_ms, *burst]);
        }
        Some(Rule::Period { limit, calendar, carry_over, carry_debt }) => {
            out.put_u8(2);
            out.put_words([*limit, *carry_over, u64::from(*carry_debt)]);
            write_calendar(calendar, out);
        }
        Some(Rule::Concurrency { limit }) => {
            out.put_u8(3);
            out.put_u64(*limit);
        }
        Some(Rule::Unlimited { calendar: None }) => out.put_u8(4),
        Some(Rule::Unlimited { calendar: Some(calendar) }) => {
            out.put_u8(5);
            write_calendar(calendar, out);
        }
    }
}

pub(crate) fn write_calendar(calendar: &crate::plan::Calendar, out: &mut RowBytes) {
    use crate::plan::Period;
    let (tag, number) = match calendar.period {
        Period::Seconds(n) => (0, n),
        Period::Hour => (1, 0),
        Period::Day => (2, 0),
        Period::Week(n) => (3, u32::from(n)),
        Period::Month(n) => (4, u32::from(n)),
        Period::Year(n) => (5, u32::from(n)),
        Period::Days(n) => (6, u32::from(n)),
        Period::Lifetime => (7, 0),
    };
    out.put_u8(tag);
    out.put_u32(number);
    out.put_text(&calendar.zone);
}

fn write_account(account: &Account, out: &mut RowBytes) {
    out.put_words([pair(account.number, account.legs), account.generation]);
    out.put_options([account.epoch_start_ms]);
    write_columns(&account.columns, out);
}

pub(crate) fn write_columns(columns: &Columns, out: &mut RowBytes) {
    out.put_wide(columns.usual());
    out.put_rare(columns.rare());
}

pub(crate) fn write_key(key: &LineageKey, out: &mut RowBytes) {
    out.put_text(key.limit.as_str());
    out.put_optional_text(key.tenant.as_ref().map(TenantId::as_str));
    out.put_optional_text(key.user.as_ref().map(UserId::as_str));
    out.put_optional_text(key.route.as_ref().map(RouteName::as_str));
    out.put_optional_text(key.model.as_ref().map(ModelName::as_str));
    out.put_optional_text(key.region.as_ref().map(RegionName::as_str));
    out.put_u8(u8::from(key.lane == Lane::Shadow));
}

impl Row for Lineage {
    const TAG: u8 = 1;

    fn write_fixed(&self, out: &mut RowBytes) {
        out.put_u8(self.unit as u8);
        write_key(&self.key, out);
    }

    fn write(&self, out: &mut RowBytes) {
        write_account(&self.current, out);
        write_rule(self.rule.as_ref(), out);
        let ladder = self
            .ladder
            .map(|ladder| u64::from(ladder.alert_percent) << 8 | u64::from(ladder.degrade_percent));
        out.put_options([ladder, self.overdraft_max, self.epoch_end_ms, self.drop_at_ms]);
        out.put_words([
            self.seen_generation,
            self.replayed_ms,
            self.refill_remainder,
            pair(self.epoch_first, self.legs),
            u64::from(self.kind as u32),
        ]);
        out.put_rare([
            self.debt,
            self.carried_in,
            self.earlier_repaid,
            // Every bit of the signed numbers, as unsigned ones.
            self.past_used as u128,
            self.past_debt as u128,
            self.archived_debt as u128,
            self.archived_used as u128,
            u128::from(self.debt_generation),
            self.crossed,
        ]);
        operated::write(self.operated.as_deref(), out);
    }
}

impl Row for ClosedAccount {
    const TAG: u8 = 2;

    fn write_fixed(&self, out: &mut RowBytes) {
        out.put_u32(self.lineage);
    }

    fn write(&self, out: &mut RowBytes) {
        write_account(&self.account, out);
    }
}

/// The statement of an account, if there is anything to tell.
pub(crate) fn statement(row: &Lineage, account: &Account, at_ms: u64) -> Option<Statement> {
    account.columns.is_active().then(|| Statement {
        lineage: Arc::clone(&row.key),
        unit: row.unit,
        generation: account.generation,
        epoch_start_ms: account.epoch_start_ms,
        columns: account.columns,
        at_ms,
    })
}
