//! The epoch bounds that go into an entry: for the plan in force when they run out soon, and for every
//! plan that the entry publishes.

use std::sync::Arc;

use holdfast_ledger::Command;
use holdfast_ledger::command::EpochBounds;
use holdfast_ledger::plan::{Calendar, Plan, Rule};

use super::ProposeError;
use crate::calendar::{CalendarError, bounds_wanted, extend_before_ms, needs_bounds};
use crate::replica::Replica;

/// How long the answer "nothing to extend" is believed when the estimate says that it is about time, ms.
const RECHECK_MS: u64 = 1_000;

/// Every calendar of a plan that takes its bounds from outside.
fn calendars_of(plan: &Plan) -> Vec<Arc<Calendar>> {
    let mut found: Vec<Arc<Calendar>> = Vec::new();
    for limit in &plan.limits {
        if let Rule::Period { calendar, .. } = &limit.rule
            && needs_bounds(calendar)
            && !found.contains(calendar)
        {
            found.push(calendar.clone());
        }
    }
    found
}

/// The calendars of the plans that `commands` publish, each known to be computable here.
pub(super) fn check_calendars(commands: &[Command]) -> Result<Vec<Arc<Calendar>>, ProposeError> {
    let mut calendars = Vec::new();
    for command in commands {
        let Command::PublishPlan(publish) = command else { continue };
        for calendar in calendars_of(&publish.plan) {
            match bounds_wanted(&calendar, 0, None) {
                Ok(_) => calendars.push(calendar),
                Err(e @ (CalendarError::UnknownZone(_) | CalendarError::OutOfRange(_))) => {
                    return Err(ProposeError::Invalid {
                        field: "limits.zone".into(),
                        problem: format!("is wrong: {e}"),
                    });
                }
            }
        }
    }
    Ok(calendars)
}

/// Remembers when bounds are due next, so that most entries look at nothing.
#[derive(Default)]
pub(super) struct BoundsKeeper {
    /// The generation and the time up to which nothing is due.
    quiet: Option<(u64, u64)>,
}

impl BoundsKeeper {
    /// The bounds for an entry stamped `stamp_ms` that publishes plans with `published` calendars.
    pub(super) fn wanted(
        &mut self,
        replica: &Replica,
        stamp_ms: u64,
        published: &[Arc<Calendar>],
    ) -> Vec<EpochBounds> {
        let mut bounds = Vec::new();
        let generation = replica.generation();
        if self.quiet.is_none_or(|(of, until_ms)| of != generation || stamp_ms >= until_ms) {
            bounds = self.look(replica, generation, stamp_ms);
        }
        for calendar in published {
            if bounds.iter().any(|b| b.calendar == *calendar) {
                continue;
            }
            // What the book knows already it ignores, and continues where its knowledge ends.
            let known = replica
                .read(|book| book.calendars().find(|(c, _)| c == calendar).and_then(|(_, known)| known));
            bounds.extend(computed(calendar, stamp_ms, known));
        }
        bounds
    }

    fn look(&mut self, replica: &Replica, generation: u64, stamp_ms: u64) -> Vec<EpochBounds> {
        let calendars: Vec<_> = replica.read(|book| book.calendars().collect());
        let mut bounds = Vec::new();
        let mut quiet_until_ms = u64::MAX;
        for (calendar, known) in &calendars {
            let wanted = computed(calendar, stamp_ms, *known);
            let due_ms = known.map_or(0, |known| extend_before_ms(known, calendar));
            quiet_until_ms = quiet_until_ms.min(due_ms.max(stamp_ms.saturating_add(RECHECK_MS)));
            bounds.extend(wanted);
        }
        // Until these are applied the book still lacks them: look again with the next entry.
        self.quiet = bounds.is_empty().then_some((generation, quiet_until_ms));
        bounds
    }
}

fn computed(calendar: &Arc<Calendar>, stamp_ms: u64, known: Option<u64>) -> Option<EpochBounds> {
    // The zone was there when the plan was published, perhaps on another machine. Without it the book
    // refuses what needs it, by name, rather than count in the wrong epoch.
    bounds_wanted(calendar, stamp_ms, known)
        .inspect_err(|error| tracing::error!("no epoch bounds for {calendar:?}: {error}"))
        .ok()
        .flatten()
}
