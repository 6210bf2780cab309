//! One lineage, naively: a list of everything that ever happened to it. Its state at a time is worked out
//! from the whole list, anew for each question.
//!
//! A bucket is one exact signed fraction: what is available less the debt. A total is the difference between what
//! its epoch gives and what was used (C7); nothing here has accounts, columns or remainders.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_ledger::ReservationId;
use holdfast_ledger::plan::{Calendar, Rule};

use crate::epochs::epoch_at;

/// Something that happened to a lineage.
#[derive(Clone, Debug)]
pub enum Fact {
    /// From now on this rule holds, of a bucket or not; `None`: the limit was withdrawn.
    Rule(Option<Rule>, bool),
    /// A reservation takes this much.
    Hold(ReservationId, u64),
    /// A reservation ends, having used this much.
    End(ReservationId, u64),
    /// What an ended reservation was said to have used, and what it used in truth.
    Correct(ReservationId, u64, u64),
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
                Fact::End(id, used) => balance.end(*id, i128::from(*used)),
                Fact::Correct(id, said, used) => balance.correct(*id, i128::from(*said), i128::from(*used)),
            }
        }
        balance.pass(now, at_ms.max(now));
        balance.show();
        balance
    }

    fn key(&self) -> u64 {
        self.epoch.map_or(self.incarnation, |(start, _)| start)
    }

    /// A total's limit; `None`: not a total, or unlimited.
    fn total(&self) -> Option<i128> {
        match &self.rule {
            Some(Rule::Period { limit, .. } | Rule::Concurrency { limit }) => Some(i128::from(*limit)),
            _ => None,
        }
    }

    /// A − (U − D) of C7 before it is cut off at 0.
    fn room(&self) -> i128 {
        let (held, spent) = self.usage.get(&self.key()).copied().unwrap_or_default();
        let overdraft = self.overdraft.get(&self.key()).copied().unwrap_or_default();
        self.total().unwrap_or(0) + self.carried_in - (held + spent - overdraft)
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

    /// Time goes by: refill, and every roll that is passed over.
    fn pass(&mut self, from: u64, to: u64) {
        if let Some(Rule::Bucket { amount, per_ms, burst }) = self.rule {
            let refilled = self.level + i128::from(to - from) * i128::from(amount);
            self.level = refilled.min(i128::from(burst) * i128::from(per_ms));
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
            Some(Rule::Bucket { per_ms, burst, .. }) => {
                // The very first rule begins full, and so does one after a rule without bounds or after none;
                // another successor opens with what was carried, and debt stays.
                let full = matches!(old, None | Some(Rule::Unlimited { .. }));
                let opens = if full { i128::from(burst) } else { free.min(i128::from(burst)) };
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
        self.book(epoch, (held, used), (-held, used));
    }

    fn correct(&mut self, id: ReservationId, said: i128, used: i128) {
        let Some(epoch) = self.ended.get(&id).copied() else { return };
        self.book(epoch, (said, used), (0, used - said));
    }

    /// In the epoch of a hold, held and spent change; `held` was set aside for what was `used`.
    fn book(&mut self, epoch: u64, (held, used): (i128, i128), change: (i128, i128)) {
        let (free, owed) = (self.free(), self.owed());
        let usage = self.usage.entry(epoch).or_default();
        usage.0 += change.0;
        usage.1 += change.1;
        match self.rule.clone() {
            Some(Rule::Bucket { per_ms, burst, .. }) => {
                let full = i128::from(burst) * i128::from(per_ms);
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
        self.gives = match &self.rule {
            Some(Rule::Bucket { burst, .. }) => i128::from(*burst),
            _ => self.total().unwrap_or(0) + self.carried_in,
        };
    }
}
