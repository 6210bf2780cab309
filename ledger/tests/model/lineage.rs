//! One lineage, naively: a list of everything that ever happened to it. Its state at a time is worked out
//! from the whole list, anew for each question.
//!
//! A bucket is one exact signed fraction: what is available less the debt. A total is the difference between what
//! its epoch gives and what was used (C7); nothing here has accounts, columns or remainders.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_ledger::plan::{Calendar, Rule};
use holdfast_ledger::{AdjustmentId, ReservationId};

use crate::epochs::epoch_at;

/// Something that happened to a lineage.
#[derive(Clone, Debug)]
pub enum Fact {
    /// From now on this rule holds, of a bucket or not; `None`: the limit was withdrawn.
    Rule(Option<Rule>, bool),
    /// A reservation takes this much.
    Hold(ReservationId, u64),
    /// A reservation that was admitted under a generation ends, having used this much.
    End(ReservationId, u64, u64),
    /// What an ended reservation that was admitted under a generation was said to have used, and what it used in truth.
    Correct(ReservationId, u64, u64, u64),
    /// An operator gives capacity, or takes it (negative).
    Capacity(i128),
    /// An operator books usage under a generation, or takes some off (negative).
    Usage(i128, u64),
    /// The limit gives this much more, until a time.
    Boost(AdjustmentId, u64, u64),
    /// A boost ends before its time.
    EndBoost(AdjustmentId),
}

/// What a lineage comes to at a time.
#[derive(Clone, Debug, Default)]
pub struct Balance {
    pub rule: Option<Rule>,
    /// Start and end of the running epoch; `None`: continuous.
    pub epoch: Option<(u64, u64)>,
    /// What the running epoch gives: the limit and what was carried in. The burst of a bucket.
    pub gives: i128,
    pub carried_in: i128,
    pub available: i128,
    pub debt: i128,
    /// Held by reservations made in the running epoch.
    pub held: i128,
    /// Held by reservations made in any epoch.
    pub held_in_all: i128,
    /// Used by ended reservations made in the running epoch.
    pub spent: i128,
    /// Debt of earlier epochs repaid in this one.
    pub earlier_repaid: i128,
    /// The earliest generation that made what is owed; means nothing without debt.
    pub owed_since: u64,
    /// A bucket's exact level times `per_ms`; negative: debt.
    level: i128,
    /// Debt of a bucket whose limit is withdrawn for now.
    bucket_debt: i128,
    is_bucket: bool,
    /// How often a bucket's limit came back: what was held before is as if of an earlier epoch.
    incarnation: u64,
    /// Calendar of the running epoch.
    calendar: Option<Arc<Calendar>>,
    /// Overdraft issued less repaid, by epoch.
    overdraft: BTreeMap<u64, i128>,
    /// Open holds: where they were made.
    open: BTreeMap<ReservationId, (u64, i128)>,
    /// Ended holds: where they were made.
    ended: BTreeMap<ReservationId, u64>,
    /// Held and spent by epoch.
    usage: BTreeMap<u64, (i128, i128)>,
    /// What operators gave less what they took, by epoch.
    given: BTreeMap<u64, i128>,
    /// Boosts that run: id, amount, end.
    boosts: Vec<(AdjustmentId, i128, u64)>,
    /// The most that may be asked at once.
    pub most_ever: i128,
}

impl Balance {
    /// Works through all facts up to a time.
    pub fn of(facts: &[(u64, Fact)], at_ms: u64) -> Balance {
        let mut balance = Balance::default();
        let mut now = 0;
        for (when, fact) in facts.iter().filter(|(when, _)| *when <= at_ms) {
            balance.pass(now, *when);
            now = *when;
            match fact {
                Fact::Rule(rule, is_bucket) => {
                    if *is_bucket && balance.rule.is_none() {
                        balance.incarnation += 1;
                    }
                    balance.is_bucket |= is_bucket;
                    balance.change_rule(now, rule.clone());
                }
                Fact::Hold(id, amount) => balance.hold(*id, i128::from(*amount)),
                Fact::End(id, used, generation) => {
                    let before = balance.owed();
                    balance.end(*id, i128::from(*used));
                    balance.date_debt(before, *generation);
                }
                Fact::Correct(id, said, used, generation) => {
                    let before = balance.owed();
                    balance.correct(*id, i128::from(*said), i128::from(*used));
                    balance.date_debt(before, *generation);
                }
                Fact::Capacity(amount) => balance.give(*amount),
                Fact::Usage(amount, generation) => {
                    let before = balance.owed();
                    balance.book(*amount);
                    balance.date_debt(before, *generation);
                }
                Fact::Boost(id, amount, until) => balance.boost(*id, i128::from(*amount), *until),
                Fact::EndBoost(id) => {
                    balance.boosts.retain(|(known, ..)| known != id);
                    balance.cut();
                }
            }
        }
        balance.pass(now, at_ms.max(now));
        balance.show();
        balance
    }

    /// Used and held by epochs that have ended: start, used, held. None where there are no epochs.
    pub fn ended(&self, at_ms: u64) -> Vec<(u64, i128, i128)> {
        let Some((running, end)) = self.epoch else { return Vec::new() };
        let ended = self.usage.iter().filter(|(start, _)| **start != running || end <= at_ms);
        let ended = ended.map(|(start, (held, spent))| (*start, *spent, *held));
        ended.filter(|(_, used, held)| *used != 0 || *held != 0).collect()
    }

    fn key(&self) -> u64 {
        self.epoch.map_or(self.incarnation, |(start, _)| start)
    }

    /// Debt that was not there before dates from the earliest generation that made a part of it.
    fn date_debt(&mut self, before: i128, generation: u64) {
        if self.owed() > before {
            let since = if before == 0 { generation } else { self.owed_since };
            self.owed_since = since.min(generation);
        }
    }

    fn boosted(&self) -> i128 {
        self.boosts.iter().map(|(_, amount, _)| amount).sum()
    }

    /// A bucket's amount, interval and burst now.
    fn pace(&self) -> Option<(i128, i128, i128)> {
        let Some(Rule::Bucket { amount, per_ms, burst }) = &self.rule else { return None };
        // The book's rates are 64 bits wide and saturate.
        let raised = |amount: u64| (i128::from(amount) + self.boosted()).min(i128::from(u64::MAX));
        Some((raised(*amount), i128::from(*per_ms), raised(*burst)))
    }

    /// A total's limit; `None`: not a total, or unlimited.
    fn total(&self) -> Option<i128> {
        match &self.rule {
            Some(Rule::Period { limit, .. } | Rule::Concurrency { limit }) => {
                Some(i128::from(*limit) + self.boosted())
            }
            _ => None,
        }
    }

    /// What the running epoch gives in all.
    fn given_in_all(&self) -> i128 {
        let given = self.given.get(&self.key()).copied().unwrap_or_default();
        self.total().unwrap_or(0) + self.carried_in + given
    }

    /// A − (U − D) of C7 before it is cut off at 0.
    fn room(&self) -> i128 {
        let (held, spent) = self.usage.get(&self.key()).copied().unwrap_or_default();
        let overdraft = self.overdraft.get(&self.key()).copied().unwrap_or_default();
        self.given_in_all() - (held + spent - overdraft)
    }

    fn free(&self) -> i128 {
        match &self.rule {
            Some(Rule::Bucket { per_ms, .. }) => self.level.div_euclid(i128::from(*per_ms)).max(0),
            Some(Rule::Period { .. } | Rule::Concurrency { .. }) => self.room().max(0),
            Some(Rule::Unlimited { .. }) | None => 0,
        }
    }

    fn owed(&self) -> i128 {
        match &self.rule {
            Some(Rule::Bucket { per_ms, .. }) => (-self.level.div_euclid(i128::from(*per_ms))).max(0),
            _ => self.bucket_debt + self.overdraft.values().sum::<i128>(),
        }
    }

    /// Repays debt in the running epoch, that of earlier epochs first.
    fn repay(&mut self, amount: i128) {
        let earlier: i128 =
            self.overdraft.iter().filter(|(epoch, _)| **epoch != self.key()).map(|(_, sum)| sum).sum();
        let here = self.overdraft.get(&self.key()).copied().unwrap_or_default();
        // What is owed of earlier epochs is their overdraft less what was repaid here already.
        self.earlier_repaid += amount.min((earlier - self.earlier_repaid).max(0));
        self.overdraft.insert(self.key(), here - amount);
    }

    /// Time goes by, stretch by stretch between the ends of boosts.
    fn pass(&mut self, from: u64, to: u64) {
        let mut from = from;
        while let Some(end) = self.boosts.iter().map(|(.., until)| *until).filter(|until| *until <= to).min()
        {
            self.pass_evenly(from, end);
            self.boosts.retain(|(.., until)| *until > end);
            self.cut();
            from = end;
        }
        self.pass_evenly(from, to);
    }

    /// A bucket that holds more than it may loses it; of totals what is free follows from the rest.
    fn cut(&mut self) {
        if let Some((_, per_ms, burst)) = self.pace() {
            self.level = self.level.min(burst * per_ms);
        }
    }

    /// An operator gives, or takes.
    fn give(&mut self, amount: i128) {
        if let Some((_, per_ms, burst)) = self.pace() {
            // What is taken is there: debt is never made of it.
            let amount = amount.max(-self.free());
            self.level = (self.level + amount * per_ms).min(self.level.max(burst * per_ms));
            return;
        }
        *self.given.entry(self.key()).or_default() += amount;
        let repaid = self.owed().min(amount.max(0));
        self.repay(repaid);
    }

    /// An operator books usage, or takes some off.
    fn book(&mut self, amount: i128) {
        let (free, owed) = (self.free(), self.owed());
        self.usage.entry(self.key()).or_default().1 += amount;
        match self.rule.clone() {
            Some(Rule::Bucket { per_ms, .. }) => self.level -= amount * i128::from(per_ms),
            Some(Rule::Period { .. }) if amount < 0 => self.repay(owed.min(-amount)),
            Some(Rule::Period { .. }) => {
                *self.overdraft.entry(self.key()).or_default() += (amount - free).max(0);
            }
            _ => {}
        }
    }

    fn boost(&mut self, id: AdjustmentId, amount: i128, until: u64) {
        self.boosts.push((id, amount, until));
        if self.total().is_some() {
            let repaid = self.owed().min(amount);
            self.repay(repaid);
        }
    }

    pub fn has_boost(&self, id: AdjustmentId) -> bool {
        self.boosts.iter().any(|(known, ..)| *known == id)
    }

    /// Time goes by: refill, and every roll that is passed over.
    fn pass_evenly(&mut self, from: u64, to: u64) {
        if let Some((amount, per_ms, burst)) = self.pace() {
            let refilled = self.level + i128::from(to - from) * amount;
            self.level = refilled.min(burst * per_ms);
        }
        while let Some((_, end)) = self.epoch
            && end <= to
            && self.rule.is_some()
        {
            let steady = self.roll(end);
            let behind = self.epoch.is_some_and(|(_, end)| end <= to);
            if steady
                && behind
                && let Some(calendar) = &self.calendar
            {
                // From here on every roll gives the same: go to the last one.
                self.epoch = Some(epoch_at(calendar, to));
            }
        }
    }

    /// One roll. Answers whether the next one would change nothing.
    fn roll(&mut self, at: u64) -> bool {
        let before = (self.carried_in, self.free(), self.owed());
        let mut carry = 0;
        match &self.rule {
            Some(Rule::Period { carry_over, carry_debt, .. }) => {
                carry = self.free().min(i128::from(*carry_over));
                if !carry_debt {
                    let owed = self.owed();
                    *self.overdraft.entry(self.key()).or_default() -= owed;
                }
            }
            Some(Rule::Unlimited { .. }) => {}
            _ => return true,
        }
        self.calendar = match &self.rule {
            Some(Rule::Period { calendar, .. }) => Some(Arc::clone(calendar)),
            Some(Rule::Unlimited { calendar }) => calendar.clone(),
            _ => None,
        };
        let Some(calendar) = &self.calendar else { return true };
        self.epoch = Some((at, epoch_at(calendar, at).1));
        self.carried_in = carry;
        self.earlier_repaid = 0;
        self.boosts.retain(|(.., until)| *until > at);
        let repaid = self.owed().min(self.room().max(0));
        self.repay(repaid);
        before == (self.carried_in, self.free(), self.owed()) && self.owed() == 0
    }

    fn change_rule(&mut self, at: u64, rule: Option<Rule>) {
        let old = std::mem::replace(&mut self.rule, rule);
        let (free, owed) = {
            let new = std::mem::replace(&mut self.rule, old.clone());
            let both = (self.free(), self.owed());
            self.rule = new;
            both
        };
        match self.rule.clone() {
            Some(Rule::Bucket { per_ms, .. }) => {
                let burst = self.pace().map_or(0, |(.., burst)| burst);
                // The very first rule begins full, and so does one after a rule without bounds or after none;
                // another successor opens with what was carried, and debt stays.
                let full = matches!(old, None | Some(Rule::Unlimited { .. }));
                let opens = if full { burst } else { free.min(burst) };
                let opens = opens - owed;
                self.bucket_debt = 0;
                self.level = opens * i128::from(per_ms);
            }
            Some(Rule::Period { calendar, .. }) => {
                self.enter_calendar(&calendar, at);
                let repaid = self.owed().min(self.room().max(0));
                self.repay(repaid);
            }
            Some(Rule::Unlimited { calendar }) => {
                if let Some(calendar) = calendar {
                    self.enter_calendar(&calendar, at);
                    let owed = self.owed();
                    self.repay(owed);
                }
                (self.level, self.bucket_debt) = (0, 0);
            }
            None if self.is_bucket => self.bucket_debt = owed,
            Some(Rule::Concurrency { .. }) | None => {}
        }
    }

    /// The first calendar begins at once, another one at the end of the running epoch, be it over since the limit was withdrawn.
    fn enter_calendar(&mut self, calendar: &Arc<Calendar>, at: u64) {
        if self.epoch.is_none_or(|(_, end)| end <= at) {
            self.epoch = Some(epoch_at(calendar, at));
            self.calendar = Some(Arc::clone(calendar));
            (self.carried_in, self.earlier_repaid) = (0, 0);
        }
    }

    fn hold(&mut self, id: ReservationId, amount: i128) {
        self.open.insert(id, (self.key(), amount));
        self.usage.entry(self.key()).or_default().0 += amount;
        if let Some(Rule::Bucket { per_ms, .. }) = self.rule {
            self.level -= amount * i128::from(per_ms);
        }
    }

    fn end(&mut self, id: ReservationId, used: i128) {
        let Some((epoch, held)) = self.open.remove(&id) else { return };
        self.ended.insert(id, epoch);
        self.account(epoch, (held, used), (-held, used));
    }

    fn correct(&mut self, id: ReservationId, said: i128, used: i128) {
        let Some(epoch) = self.ended.get(&id).copied() else { return };
        self.account(epoch, (said, used), (0, used - said));
    }

    /// In the epoch of a hold, held and spent change; `held` was set aside for what was `used`.
    fn account(&mut self, epoch: u64, (held, used): (i128, i128), change: (i128, i128)) {
        let (free, owed) = (self.free(), self.owed());
        let usage = self.usage.entry(epoch).or_default();
        usage.0 += change.0;
        usage.1 += change.1;
        match self.rule.clone() {
            Some(Rule::Bucket { per_ms, .. }) => {
                let full = self.pace().map_or(0, |(_, per_ms, burst)| burst * per_ms);
                // Of an earlier incarnation only debt is repaid.
                let back = if epoch == self.key() { held - used } else { (held - used).min(owed) };
                self.level = (self.level + back * i128::from(per_ms)).min(full.max(self.level));
            }
            Some(Rule::Unlimited { .. }) if epoch != self.key() && used > held => {
                // An overrun of an earlier epoch is repaid in the running one, which has no bounds.
                *self.overdraft.entry(epoch).or_default() += used - held;
                self.repay(used - held);
            }
            Some(Rule::Unlimited { .. } | Rule::Concurrency { .. }) => {}
            None if self.is_bucket => self.bucket_debt = (owed + used - held).max(0),
            Some(Rule::Period { .. }) | None if used <= held => {
                // A refund repays debt first, whichever epoch it is of, in the epoch of the hold.
                let repaid = owed.min(held - used);
                if epoch == self.key() {
                    self.repay(repaid);
                } else {
                    *self.overdraft.entry(epoch).or_default() -= repaid;
                }
            }
            Some(Rule::Period { .. }) | None => {
                // An overrun takes what is available now; the rest is debt of the epoch of the hold.
                let over = used - held;
                *self.overdraft.entry(epoch).or_default() += over;
                self.repay(over.min(free));
            }
        }
    }

    fn show(&mut self) {
        let (held, spent) = self.usage.get(&self.key()).copied().unwrap_or_default();
        (self.held, self.spent) = (held, spent);
        self.held_in_all = self.usage.values().map(|(held, _)| held).sum();
        self.available = self.free();
        self.debt = self.owed();
        self.gives = self.pace().map_or(self.given_in_all(), |(.., burst)| burst).max(0);
        self.most_ever = match &self.rule {
            Some(Rule::Bucket { .. }) => self.gives,
            Some(Rule::Period { carry_over, .. }) => {
                (self.total().unwrap_or(0) + i128::from(*carry_over)).max(self.gives)
            }
            _ => self.total().unwrap_or(0).max(self.gives),
        };
    }
}
