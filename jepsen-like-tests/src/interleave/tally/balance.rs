//! What one lineage has left and what it owes, counted with a handful of numbers: no accounts, no columns,
//! brought up to date at every entry in the order of time.

use holdfast_ledger::answer::{Reason, Tier};

use crate::interleave::facts::{Every, Rule};

/// Thresholds of a total's ladder, percent: the default of plans.
const ALERT_PERCENT: i128 = 80;
const DEGRADE_PERCENT: i128 = 95;

/// The kind that a limit keeps whatever its rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Bucket,
    Total,
    Slots,
}

/// One lineage.
#[derive(Clone, Debug)]
pub struct Balance {
    /// `None`: the limit is not in the plan at the moment.
    pub rule: Option<Rule>,
    shape: Shape,
    /// What the lineage owes.
    pub debt: i128,
    /// What reservations of the running epoch hold.
    pub held: i128,
    /// A bucket's level.
    level: i128,
    /// What of a bucket's next unit has accrued, in parts of `per_ms`.
    parts: u64,
    /// Held and spent in the running epoch.
    used: i128,
    /// Debt made less debt repaid in the running epoch.
    epoch_debt: i128,
    carried_in: i128,
    /// What operators granted less what they took in the running epoch.
    net: i128,
    /// Debt of earlier epochs that was repaid in this one.
    earlier_repaid: i128,
    /// The stretch between two changes of rule or epoch; a hold belongs to the one it was made in.
    stretch: u32,
    /// The running epoch's first stretch.
    epoch_first: u32,
    epoch_end_ms: Option<u64>,
    at_ms: u64,
}

impl Balance {
    /// A lineage whose limit, with this rule of its own, has come into force.
    pub fn open(limit: &Rule, rule: Rule, at_ms: u64) -> Self {
        let mut balance = Balance {
            rule: None,
            shape: shape_of(limit, Shape::Total),
            debt: 0,
            held: 0,
            level: 0,
            parts: 0,
            used: 0,
            epoch_debt: 0,
            carried_in: 0,
            net: 0,
            earlier_repaid: 0,
            stretch: 0,
            epoch_first: 0,
            epoch_end_ms: None,
            at_ms,
        };
        balance.start(rule, at_ms);
        balance
    }

    /// What may be reserved now.
    pub fn available(&self) -> i128 {
        match self.rule {
            Some(Rule::Bucket { .. }) => self.level,
            Some(Rule::Period { limit, .. } | Rule::Slots { limit }) => {
                (self.allowance(limit) - self.used + self.epoch_debt).max(0)
            }
            Some(Rule::Unlimited { .. }) | None => 0,
        }
    }

    /// What the running epoch gives in all.
    fn allowance(&self, limit: u64) -> i128 {
        i128::from(limit) + self.carried_in + self.net
    }

    /// Whether requests are never refused here.
    pub fn is_unlimited(&self) -> bool {
        matches!(self.rule, Some(Rule::Unlimited { .. }))
    }

    /// The stretch that a hold made now belongs to.
    pub fn stretch(&self) -> u32 {
        self.stretch
    }

    /// Lets time pass: epochs end, buckets refill.
    pub fn advance(&mut self, until_ms: u64) {
        while let (Some(end_ms), Some(rule)) = (self.epoch_end_ms, self.rule)
            && end_ms <= until_ms
        {
            let idle = self.roll(end_ms, rule);
            if idle {
                self.skip(until_ms, rule);
            }
        }
        if let Some(Rule::Bucket { amount, per_ms, .. }) = self.rule {
            let parts =
                u128::from(until_ms.saturating_sub(self.at_ms)) * u128::from(amount) + u128::from(self.parts);
            self.parts = (parts % u128::from(per_ms)) as u64;
            self.credit((parts / u128::from(per_ms)) as i128);
        }
        self.at_ms = self.at_ms.max(until_ms);
    }

    /// Ends the epoch. True: the next one begins like this one, so that more of them change nothing.
    fn roll(&mut self, end_ms: u64, rule: Rule) -> bool {
        let (grant, every, carry_over, carry_debt) = match rule {
            Rule::Period { limit, every, carry_over, carry_debt } => {
                (i128::from(limit), every, i128::from(carry_over), carry_debt)
            }
            Rule::Unlimited { every: Some(every) } => (0, every, 0, true),
            _ => return false,
        };
        let figures = |balance: &Self| {
            (
                balance.debt,
                balance.carried_in,
                balance.net,
                balance.used,
                balance.epoch_debt,
                balance.earlier_repaid,
            )
        };
        let before = figures(self);
        if !carry_debt {
            self.debt = 0;
        }
        let carried = self.available().min(carry_over);
        self.begin_epoch(carried, every.end_after(end_ms));
        self.credit(grant);
        before == figures(self)
    }

    /// Passes over epochs that change nothing.
    fn skip(&mut self, until_ms: u64, rule: Rule) {
        if let Rule::Period { every, .. } | Rule::Unlimited { every: Some(every) } = rule
            && self.epoch_end_ms.is_some_and(|end_ms| end_ms <= until_ms)
        {
            self.epoch_end_ms = every.end_after(until_ms);
            self.stretch += 1;
            self.epoch_first = self.stretch;
        }
    }

    fn begin_epoch(&mut self, carried: i128, end_ms: Option<u64>) {
        self.stretch += 1;
        self.epoch_first = self.stretch;
        (self.used, self.epoch_debt, self.held, self.earlier_repaid) = (0, 0, 0, 0);
        (self.carried_in, self.net) = (carried, 0);
        self.epoch_end_ms = end_ms;
    }

    fn start(&mut self, rule: Rule, at_ms: u64) {
        let every: Option<Every> = match rule {
            Rule::Period { every, .. } => Some(every),
            Rule::Unlimited { every } => every,
            _ => None,
        };
        self.rule = Some(rule);
        self.level = 0;
        self.parts = 0;
        self.begin_epoch(0, every.and_then(|every| every.end_after(at_ms)));
        self.grant();
    }

    fn grant(&mut self) {
        let amount = match self.rule {
            Some(Rule::Bucket { burst, .. }) => i128::from(burst),
            Some(Rule::Period { limit, .. } | Rule::Slots { limit }) => i128::from(limit),
            Some(Rule::Unlimited { .. }) => self.debt,
            None => 0,
        };
        self.credit(amount);
    }

    /// Another rule from now on; `None`: the limit is withdrawn.
    pub fn change(&mut self, rule: Option<Rule>, at_ms: u64) {
        self.advance(at_ms);
        if rule == self.rule {
            return;
        }
        let Some(rule) = rule else {
            (self.rule, self.level, self.parts) = (None, 0, 0);
            return;
        };
        let shape = shape_of(&rule, self.shape);
        let runs_on = shape == self.shape
            && match shape {
                Shape::Bucket => self.rule.is_some(),
                _ => self.epoch_end_ms.is_none_or(|end_ms| at_ms < end_ms),
            };
        self.shape = shape;
        if !runs_on {
            self.start(rule, at_ms);
            return;
        }
        let (before, was_unlimited) = (self.available(), self.is_unlimited());
        self.rule = Some(rule);
        self.stretch += 1;
        self.parts = 0;
        match rule {
            Rule::Bucket { burst, .. } => {
                self.level = before.min(i128::from(burst));
                if was_unlimited {
                    self.grant();
                }
            }
            Rule::Unlimited { .. } => {
                self.level = 0;
                self.grant();
            }
            _ => self.repay((self.available() - before).max(0)),
        }
    }

    fn credit(&mut self, amount: i128) {
        let left = amount - amount.min(self.debt);
        self.repay(amount);
        if let Some(Rule::Bucket { burst, .. }) = self.rule {
            self.level = (self.level + left).min(i128::from(burst));
            if self.level >= i128::from(burst) {
                self.parts = 0;
            }
        }
    }

    /// Pays debt with what the running stretch was given.
    fn repay(&mut self, amount: i128) {
        let repaid = amount.min(self.debt);
        self.earlier_repaid += repaid.min(self.earlier_debt());
        self.epoch_debt -= repaid;
        self.debt -= repaid;
    }

    fn earlier_debt(&self) -> i128 {
        (self.debt - self.epoch_debt - self.earlier_repaid).max(0)
    }

    /// Holds an amount.
    pub fn hold(&mut self, amount: u64) {
        let amount = i128::from(amount);
        if let Some(Rule::Bucket { .. }) = self.rule {
            self.level -= amount;
        }
        self.used += amount;
        self.held += amount;
    }

    /// Ends a hold made in `stretch`: `spent` of it was used.
    pub fn end(&mut self, stretch: u32, held: u64, spent: u64) {
        let before = self.available();
        if stretch >= self.epoch_first {
            self.held -= i128::from(held);
        }
        self.book(stretch, i128::from(held), i128::from(spent), before);
    }

    /// What was booked as `before` of a hold made in `stretch` was `actual` in truth.
    pub fn correct(&mut self, stretch: u32, before: u64, actual: u64) {
        let available = self.available();
        self.book(stretch, i128::from(before), i128::from(actual), available);
    }

    fn book(&mut self, stretch: u32, held: i128, spent: i128, before: i128) {
        let same_epoch = stretch >= self.epoch_first;
        if same_epoch {
            self.used += spent - held;
        }
        if spent <= held {
            self.give_back(held - spent, stretch, same_epoch);
        } else {
            self.overrun(spent - held, before, stretch, same_epoch);
        }
    }

    fn give_back(&mut self, amount: i128, stretch: u32, same_epoch: bool) {
        if stretch == self.stretch {
            self.credit(amount);
            return;
        }
        // Debt is repaid where the hold was made.
        let repaid = amount.min(self.debt);
        self.debt -= repaid;
        if same_epoch {
            self.epoch_debt -= repaid;
            self.credit(amount - repaid);
        }
    }

    fn overrun(&mut self, over: i128, available: i128, stretch: u32, same_epoch: bool) {
        if stretch == self.stretch {
            if self.is_unlimited() {
                return;
            }
            let taken = over.min(available);
            self.take_level(taken);
            self.debt += over - taken;
            self.epoch_debt += over - taken;
            return;
        }
        self.debt += over;
        if same_epoch {
            self.epoch_debt += over;
        }
        let pays = if self.is_unlimited() { over } else { over.min(available) };
        self.take_level(pays);
        self.repay(pays);
    }

    /// An operator grants more in the running epoch. False: there is nothing to add to.
    pub fn grant_more(&mut self, amount: u64) -> bool {
        match self.rule {
            Some(Rule::Bucket { .. }) => self.credit(i128::from(amount)),
            Some(Rule::Period { .. } | Rule::Slots { .. }) => {
                self.net += i128::from(amount);
                self.repay(i128::from(amount));
            }
            Some(Rule::Unlimited { .. }) | None => return false,
        }
        true
    }

    /// An operator takes some of what the running epoch gives. False: it gives less, or nothing that ends.
    pub fn take_away(&mut self, amount: u64) -> bool {
        let amount = i128::from(amount);
        match self.rule {
            Some(Rule::Bucket { .. }) => self.level -= amount.min(self.level),
            Some(Rule::Period { limit, .. } | Rule::Slots { limit }) => {
                if amount > self.allowance(limit) {
                    return false;
                }
                self.net -= amount;
            }
            Some(Rule::Unlimited { .. }) | None => return false,
        }
        true
    }

    /// An operator books usage. False: slots are not used up.
    pub fn charge(&mut self, amount: u64) -> bool {
        if self.rule.is_none() || self.shape == Shape::Slots {
            return false;
        }
        let before = self.available();
        self.book(self.stretch, 0, i128::from(amount), before);
        true
    }

    /// An operator takes usage back. False: not so much was used, or it is no total.
    pub fn take_back(&mut self, amount: u64) -> bool {
        let amount = i128::from(amount);
        if self.rule.is_none() || self.shape != Shape::Total || amount > self.used - self.held {
            return false;
        }
        self.used -= amount;
        self.credit(amount);
        true
    }

    fn take_level(&mut self, amount: i128) {
        if let Some(Rule::Bucket { .. }) = self.rule {
            self.level -= amount;
        }
    }

    /// What the lineage says to a request for an amount; `None`: the request does not name its unit.
    pub fn judge(&self, amount: Option<u64>) -> Result<Tier, Reason> {
        let asked = i128::from(amount.unwrap_or(0));
        let available = self.available();
        let most = match self.rule {
            Some(Rule::Bucket { burst, .. }) => i128::from(burst),
            Some(Rule::Period { limit, carry_over, .. }) => {
                (i128::from(limit) + i128::from(carry_over)).max(self.allowance(limit))
            }
            Some(Rule::Slots { limit }) => i128::from(limit).max(self.allowance(limit)),
            Some(Rule::Unlimited { .. }) | None => return Ok(Tier::Normal),
        };
        if asked > available && asked > most {
            return Err(Reason::NeverFits);
        }
        if self.debt > 0 {
            return Err(Reason::Debt);
        }
        if asked <= available {
            return Ok(amount.map_or(Tier::Normal, |_| self.tier_with(asked)));
        }
        Err(if asked <= available + self.held { Reason::Held } else { Reason::Spent })
    }

    fn tier_with(&self, more: i128) -> Tier {
        let Some(Rule::Period { limit, .. }) = self.rule else { return Tier::Normal };
        let gives = self.allowance(limit).max(0);
        let used = (self.used + more + self.earlier_repaid) * 100;
        match gives {
            0 => Tier::Normal,
            _ if used >= gives * DEGRADE_PERCENT => Tier::DegradedHeavy,
            _ if used >= gives * ALERT_PERCENT => Tier::DegradedLight,
            _ => Tier::Normal,
        }
    }
}

fn shape_of(rule: &Rule, kept: Shape) -> Shape {
    match rule {
        Rule::Bucket { .. } => Shape::Bucket,
        Rule::Period { .. } => Shape::Total,
        Rule::Slots { .. } => Shape::Slots,
        Rule::Unlimited { .. } => kept,
    }
}
