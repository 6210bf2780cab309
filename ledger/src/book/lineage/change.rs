//! Opening a lineage, and what a changed rule does to one.

use std::sync::Arc;

use crate::book::calendars::{Calendars, Uncovered};
use crate::book::lineage::credit::Source;
use crate::book::lineage::{Sink, Terms};
use crate::plan::Rule;
use crate::record::{Account, Columns, Lineage, LineageKey};
use crate::unit::Unit;

/// A point of a lineage's history at which its terms were set anew.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) generation: u64,
    pub(crate) at_ms: u64,
    /// `None`: the limit was withdrawn.
    pub(crate) terms: Option<Terms>,
}

impl Lineage {
    /// A lineage that nothing has happened to, as of the change that first gives it terms.
    pub(crate) fn open(
        key: Arc<LineageKey>,
        unit: Unit,
        generation: u64,
        at_ms: u64,
        terms: Terms,
        calendars: &Calendars,
        sink: &mut Sink,
    ) -> Result<Lineage, Uncovered> {
        let account =
            Account { number: 0, generation, epoch_start_ms: None, columns: Columns::default(), legs: 0 };
        let mut lineage = Lineage {
            key,
            unit,
            kind: terms.kind,
            rule: None,
            ladder: terms.ladder,
            overdraft_max: terms.overdraft_max,
            seen_generation: generation,
            replayed_ms: at_ms,
            refill_remainder: 0,
            epoch_first: 0,
            epoch_end_ms: None,
            current: account,
            debt: 0,
            debt_generation: 0,
            carried_in: 0,
            earlier_repaid: 0,
            past_used: 0,
            past_debt: 0,
            crossed: 0,
            archived_debt: 0,
            archived_used: 0,
            legs: 0,
            drop_at_ms: None,
            operated: None,
        };
        lineage.start(terms.rule, at_ms, calendars, sink)?;
        Ok(lineage)
    }

    /// Starts the first epoch under a rule on the account that has just been opened.
    fn start(
        &mut self,
        rule: Rule,
        at_ms: u64,
        calendars: &Calendars,
        sink: &mut Sink,
    ) -> Result<(), Uncovered> {
        let (start_ms, end_ms) = match calendar_of(&rule) {
            Some(calendar) => {
                let from_ms = calendars.first_known_ms(calendar, at_ms)?;
                let (start, end) = calendars.epoch_at(calendar, from_ms)?;
                (Some(start), end)
            }
            None => (None, None),
        };
        self.rule = Some(rule);
        self.refill_remainder = 0;
        self.begin_epoch(0, start_ms, end_ms);
        self.grant(sink);
        Ok(())
    }

    /// What a fresh account is given.
    fn grant(&mut self, sink: &mut Sink) {
        let amount = match self.rule {
            // An unlimited rule pays every debt and holds nothing.
            Some(Rule::Unlimited { .. }) => self.debt,
            _ => match self.bucket() {
                Some(bucket) => u128::from(bucket.burst),
                None => self.limit().unwrap_or(0),
            },
        };
        self.credit(amount, Source::Grant, sink);
    }

    /// Closes the account under the old rule and opens its successor under the new one, if the rule changed.
    pub(crate) fn change(
        &mut self,
        change: &Change,
        calendars: &Calendars,
        sink: &mut Sink,
    ) -> Result<(), Uncovered> {
        let terms = change.terms.as_ref();
        self.ladder = terms.and_then(|terms| terms.ladder);
        self.overdraft_max = terms.and_then(|terms| terms.overdraft_max);
        let rule = terms.map(|terms| &terms.rule);
        if rule == self.rule.as_ref() {
            return Ok(());
        }
        let Some(terms) = terms else {
            self.retire_available(0);
            self.rule = None;
            self.refill_remainder = 0;
            return Ok(());
        };
        let runs_on = self.kind == terms.kind && self.epoch_runs_on(change.at_ms);
        self.kind = terms.kind;
        if runs_on {
            self.succeed(terms.rule.clone(), change, sink);
            return Ok(());
        }
        self.retire_available(0);
        self.close_current(change.at_ms, sink);
        self.current.generation = change.generation;
        self.start(terms.rule.clone(), change.at_ms, calendars, sink)
    }

    /// Whether the running epoch goes on under another rule of the same kind.
    fn epoch_runs_on(&self, at_ms: u64) -> bool {
        match self.kind {
            // A withdrawn bucket that comes back is a new one, as it is for subjects that were never seen.
            crate::record::LimitKind::Bucket => self.rule.is_some(),
            _ => self.epoch_end_ms.is_none_or(|end| at_ms < end),
        }
    }

    /// Opens the successor within the same epoch (C9): it is carried what it takes, and C7 gives the rest.
    fn succeed(&mut self, rule: Rule, change: &Change, sink: &mut Sink) {
        let was_unlimited = self.is_unlimited();
        self.rule = Some(rule);
        let takes = match self.bucket() {
            Some(bucket) => u128::from(bucket.burst),
            None => self.target().unwrap_or(0),
        };
        let carried = self.current.columns.available.min(takes);
        self.retire_available(carried);
        self.close_current(change.at_ms, sink);
        self.current.generation = change.generation;
        self.current.columns.opening = carried;
        self.current.columns.available = carried;
        self.refill_remainder = 0;
        match self.rule {
            Some(Rule::Bucket { .. }) if !was_unlimited => {}
            Some(Rule::Bucket { .. }) | Some(Rule::Unlimited { .. }) => self.grant(sink),
            _ => self.credit(takes - carried, Source::RuleRaise, sink),
        }
    }
}

fn calendar_of(rule: &Rule) -> Option<&Arc<crate::plan::Calendar>> {
    match rule {
        Rule::Period { calendar, .. } => Some(calendar),
        Rule::Unlimited { calendar } => calendar.as_ref(),
        Rule::Bucket { .. } | Rule::Concurrency { .. } => None,
    }
}
