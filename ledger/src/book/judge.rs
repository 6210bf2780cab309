//! The decision: whether a request fits every limit, which one says no first, and when to come back.

use crate::answer::{Reason, Rejection, Tier};
use crate::book::calendars::Calendars;
use crate::book::lineage::Sink;
use crate::book::lineage::roll::carried_after;
use crate::ids::LimitId;
use crate::limits::{BOOSTS_PER_LINEAGE_MAX, LEGS_MAX, SLOT_RETRY_MS};
use crate::mutants;
use crate::plan::{Ladder, Level, Rule};
use crate::record::{Freeze, FreezeCause, LimitKind, Lineage};
use crate::unit::Unit;

/// What is asked of one lineage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// The lineage, replayed to now.
    pub(crate) lineage: &'a Lineage,
    /// The amount; `None`: the request does not name the unit, and only the lineage's debt counts.
    pub(crate) amount: Option<u64>,
    /// What open reservations of the running epoch hold on the lineage's earlier accounts.
    pub(crate) held_before: u128,
}

/// A limit that says no.
#[derive(Clone, Debug, PartialEq, Eq)]
struct No {
    reason: Reason,
    reset_at_ms: Option<u64>,
    retry_at_ms: Option<u64>,
}

/// Order of reporting: the reason's class, then the kind of limit, then the level, then the id.
type Rank<'a> = (u8, LimitKind, Level, &'a LimitId);

/// The tier of an admission, or the rejection to report. The named limit is the first in the prescribed
/// order; the wait is the longest over all that say no, since a shorter one would be too early.
pub(crate) fn judge<'a>(
    asks: impl Iterator<Item = Ask<'a>> + Clone,
    freeze: Option<&Freeze>,
    now_ms: u64,
    generation: u64,
    calendars: &Calendars,
) -> Result<Tier, Rejection> {
    if let Some(freeze) = freeze {
        return Err(frozen(freeze, generation, asks));
    }
    let mut tier = Tier::Normal;
    let mut first: Option<(Rank<'a>, No, &'a Lineage)> = None;
    let mut retry_at_ms = Some(0);
    for ask in asks.clone() {
        match judge_one(&ask, now_ms, calendars) {
            Ok(found) => tier = tier.max(found),
            Err(no) => {
                let lineage = ask.lineage;
                retry_at_ms = retry_at_ms.zip(no.retry_at_ms).map(|(a, b): (u64, u64)| a.max(b));
                let rank = (class(no.reason), lineage.kind, lineage.key.level(), &lineage.key.limit);
                if first.as_ref().is_none_or(|(known, ..)| rank < *known) {
                    first = Some((rank, no, lineage));
                }
            }
        }
    }
    let Some((_, no, lineage)) = first else { return Ok(tier) };
    if asks.clone().any(|ask| ask.lineage.next_boost_end_ms().is_some()) {
        retry_at_ms = retry_at_ms.and_then(|at_ms| all_fit_at(asks, at_ms, calendars));
    }
    Err(Rejection {
        generation,
        limit: lineage.key.limit.clone(),
        level: lineage.key.level(),
        unit: lineage.unit,
        reason: no.reason,
        reset_at_ms: no.reset_at_ms,
        retry_after_ms: retry_at_ms.map(|at| at.saturating_sub(now_ms)),
    })
}

/// The first instant from one on, before which some limit says no, at which all of them fit. What fits now may not once a
/// boost has ended, and then the wait is longer, or there is none. `None`: never, or past the bounds that are known.
fn all_fit_at<'a>(
    asks: impl Iterator<Item = Ask<'a>> + Clone,
    mut at_ms: u64,
    calendars: &Calendars,
) -> Option<u64> {
    // Each further round is past the end of a boost.
    for _ in 0..=LEGS_MAX * BOOSTS_PER_LINEAGE_MAX {
        let mut later_ms = at_ms;
        // The wait for a slot is a hint.
        for ask in asks.clone().filter(|ask| ask.lineage.kind != LimitKind::Concurrency) {
            let lineage = &passed(ask.lineage, at_ms, calendars)?;
            if let Err(no) = judge_one(&Ask { lineage, ..ask }, at_ms, calendars) {
                later_ms = later_ms.max(no.retry_at_ms?);
            }
        }
        if later_ms == at_ms {
            return Some(at_ms);
        }
        at_ms = later_ms;
    }
    None
}

/// A breach names the limit that was breached, an operator's freeze the narrowest of those whose unit is asked for:
/// others are looked at only where the book knows their lineage, which must not make a difference. Where there is
/// none the route's name stands for it: something has to.
fn frozen<'a>(freeze: &Freeze, generation: u64, asks: impl Iterator<Item = Ask<'a>>) -> Rejection {
    let (limit, level, unit) = match &freeze.cause {
        FreezeCause::Breach { limit, level, unit, .. } => (limit.clone(), *level, *unit),
        FreezeCause::Operator { .. } => {
            let asked = asks.filter(|ask| ask.amount.is_some());
            let keys = asked.map(|ask| (&ask.lineage.key, ask.lineage.unit));
            match keys.min_by_key(|&(key, _)| (std::cmp::Reverse(key.level()), &key.limit)) {
                Some((key, unit)) => (key.limit.clone(), key.level(), unit),
                None => (LimitId::from(&freeze.scope.route), Level::Tenant, Unit::Requests),
            }
        }
    };
    let (reset_at_ms, retry_after_ms) = (None, None);
    Rejection { generation, limit, level, unit, reason: Reason::Frozen, reset_at_ms, retry_after_ms }
}

fn class(reason: Reason) -> u8 {
    match reason {
        Reason::Frozen => 0,
        Reason::NeverFits => 1,
        Reason::Debt => 2,
        Reason::Held | Reason::Spent => 3,
    }
}

fn judge_one(ask: &Ask<'_>, now_ms: u64, calendars: &Calendars) -> Result<Tier, No> {
    let lineage = ask.lineage;
    let amount = u128::from(ask.amount.unwrap_or(0));
    let available = lineage.current.columns.available;
    if lineage.is_unlimited() {
        return Ok(Tier::Normal);
    }
    if amount > available && amount > most_ever(lineage) {
        return Err(No { reason: Reason::NeverFits, reset_at_ms: None, retry_at_ms: None });
    }
    let in_debt = lineage.debt > 0 && !(mutants::on("debt-elsewhere-is-ignored") && ask.amount.is_none());
    let fits = if mutants::on("less-for-at-most") { amount < available } else { amount <= available };
    if !in_debt && fits {
        return Ok(ask.amount.map_or(Tier::Normal, |amount| tier_with(lineage, amount)));
    }
    let held = lineage.current.columns.reserved + ask.held_before;
    let reason = match in_debt {
        true => Reason::Debt,
        false if amount <= available + held => Reason::Held,
        false => Reason::Spent,
    };
    let (reset_at_ms, retry_at_ms) = times(lineage, amount, now_ms, calendars);
    Err(No { reason, reset_at_ms, retry_at_ms })
}

/// The most that a limit can ever give at once.
fn most_ever(lineage: &Lineage) -> u128 {
    if let Some(bucket) = lineage.bucket() {
        return u128::from(bucket.burst);
    }
    let Some(limit) = lineage.limit() else { return u128::MAX };
    let carry_over = match lineage.rule {
        Some(Rule::Period { carry_over, .. }) => u128::from(carry_over),
        _ => 0,
    };
    // What operators granted counts as long as its epoch runs.
    (limit + carry_over).max(lineage.allowance().unwrap_or(0))
}

/// When the limit resets, and the first instant at which the amount fits if nothing else happens.
fn times(lineage: &Lineage, amount: u128, now_ms: u64, calendars: &Calendars) -> (Option<u64>, Option<u64>) {
    match &lineage.rule {
        Some(Rule::Bucket { .. }) => {
            let at = accrued_at(lineage, amount, now_ms);
            (at, at)
        }
        Some(Rule::Period { .. }) => (lineage.epoch_end_ms, fits_at(lineage, amount, calendars)),
        Some(Rule::Concurrency { .. }) => (None, Some(now_ms.saturating_add(SLOT_RETRY_MS))),
        Some(Rule::Unlimited { .. }) | None => (None, None),
    }
}

/// When a bucket, replayed to now, holds an amount, its debt repaid first. `None`: never.
pub(crate) fn accrued_at(lineage: &Lineage, wanted: u128, now_ms: u64) -> Option<u64> {
    let bucket = lineage.bucket().filter(|bucket| wanted <= u128::from(bucket.burst))?;
    let debt = if mutants::on("wait-without-debt") { 0 } else { lineage.debt };
    let missing = (debt + wanted).saturating_sub(lineage.current.columns.available);
    if missing == 0 {
        return Some(now_ms);
    }
    let parts = missing.checked_mul(u128::from(bucket.per_ms));
    let parts = parts.map(|parts| parts.saturating_sub(u128::from(lineage.refill_remainder)));
    let wait_ms = parts.filter(|_| bucket.amount > 0).map(|parts| parts.div_ceil(bucket.amount.into()));
    let at_ms = wait_ms.and_then(|wait_ms| now_ms.checked_add(u64::try_from(wait_ms).ok()?));
    // A boost that ends before makes it slower from then on, and may leave less room.
    let ended = lineage.next_boost_end_ms().filter(|end_ms| at_ms.is_none_or(|at_ms| *end_ms <= at_ms));
    match ended {
        None => at_ms,
        Some(end_ms) => accrued_at(&passed(lineage, end_ms, &Calendars::default())?, wanted, end_ms),
    }
}

/// A lineage as it will be at an instant if nothing happens before; `None`: past the bounds that are known.
fn passed(lineage: &Lineage, at_ms: u64, calendars: &Calendars) -> Option<Lineage> {
    let mut passed = lineage.clone();
    passed.advance(at_ms, calendars, &mut Sink::default()).ok()?;
    Some(passed)
}

/// When a period limit, idle from now on, holds an amount: the end of the epoch before the one that can give
/// it. `None`: never, or past the bounds that are known.
fn fits_at(lineage: &Lineage, amount: u128, calendars: &Calendars) -> Option<u64> {
    let Some(Rule::Period { calendar, carry_over, carry_debt, .. }) = &lineage.rule else { return None };
    let (limit, carry_over) = (lineage.limit()?, u128::from(*carry_over));
    let end_ms = lineage.epoch_end_ms?;
    let debt = if *carry_debt { lineage.debt } else { 0 };
    let available = lineage.current.columns.available;
    let rolls = rolls_until(debt, available, limit, carry_over, amount);
    let at_ms = rolls.and_then(|rolls| calendars.later_end_ms(calendar, end_ms, rolls - 1));
    let Some(boost_end_ms) = lineage.next_boost_end_ms().filter(|end| at_ms.is_none_or(|at| *end <= at))
    else {
        return at_ms;
    };
    // From the end of a boost on epochs give less.
    let later = passed(lineage, boost_end_ms, calendars)?;
    if later.debt == 0 && amount <= later.current.columns.available {
        return Some(boost_end_ms);
    }
    fits_at(&later, amount, calendars)
}

/// How many idle rolls until `amount` is available, at least 1; `None`: it never is.
fn rolls_until(debt: u128, available: u128, limit: u128, carry_over: u128, amount: u128) -> Option<u128> {
    if limit == 0 {
        let carried = available.min(carry_over);
        return (debt == 0 && carried >= amount).then_some(1);
    }
    // In epoch `cleared` the last debt is repaid, and the next one has its whole grant.
    let cleared = debt.div_ceil(limit);
    if cleared > 0 && cleared * limit - debt >= amount {
        return Some(cleared);
    }
    let first = cleared + 1;
    let carried = carried_after(debt, available, limit, carry_over, first);
    let short = amount.saturating_sub(limit + carried);
    (amount <= limit + carry_over).then(|| first + short.div_ceil(limit))
}

/// The ratio of the ladder, as a fraction; `None`: unlimited, withdrawn, or a limit of 0.
pub(crate) fn ratio(lineage: &Lineage, extra: u64) -> Option<(u128, u128)> {
    let extra = u128::from(extra);
    let fraction = match lineage.bucket() {
        Some(bucket) => {
            let burst = u128::from(bucket.burst);
            (burst.saturating_sub(lineage.current.columns.available) + lineage.debt + extra, burst)
        }
        None => {
            let used = u128::try_from(lineage.used()).unwrap_or(0);
            (used + extra + lineage.earlier_repaid, lineage.allowance()?)
        }
    };
    (fraction.1 > 0).then_some(fraction)
}

/// The tier that a ladder gives for a ratio.
pub(crate) fn tier_of(ladder: &Ladder, (used, allowance): (u128, u128)) -> Tier {
    // Nearly all are of 64 bits, and their products cannot overflow 128: no need to look whether they do.
    let reaches = |percent: u8| match (u64::try_from(used), u64::try_from(allowance)) {
        (Ok(used), Ok(allowance)) => u128::from(used) * 100 >= u128::from(allowance) * u128::from(percent),
        _ => used * 100 >= allowance * u128::from(percent),
    };
    let later = if mutants::on("ladder-one-percent-late") { 1 } else { 0 };
    // A plan's ladder never degrades before it alerts.
    if !reaches(ladder.alert_percent + later) {
        Tier::Normal
    } else if reaches(ladder.degrade_percent) {
        Tier::DegradedHeavy
    } else {
        Tier::DegradedLight
    }
}

/// The tier of a lineage once an amount more is used.
pub(crate) fn tier_with(lineage: &Lineage, extra: u64) -> Tier {
    match (&lineage.ladder, ratio(lineage, extra)) {
        (Some(ladder), Some(ratio)) => tier_of(ladder, ratio),
        // What gives nothing is used up.
        (Some(_), None) if lineage.allowance() == Some(0) => Tier::DegradedHeavy,
        _ => Tier::Normal,
    }
}
