//! Book and model side by side: every difference is a text that says what each of them holds.

use std::collections::BTreeMap;

use holdfast_ledger::adjust::{AdjustmentReceipt, Standing};
use holdfast_ledger::answer::{Reason, Receipt, Rejection, State, Tier};
use holdfast_ledger::ids::{LimitId, RouteName, TenantId, UserId};
use holdfast_ledger::query::{Drain, RolledBack};
use holdfast_ledger::record::Lane;
use holdfast_ledger::shadow::ShadowDecision;
use holdfast_ledger::{Amounts, Answer, Book, QuotaLine, Refusal};

use crate::lineage::Balance;
use crate::naive::Model;
use crate::verdict::{Booked, Figures, No, Shadow, Sketch, Verdict, figures_of};

/// The parts of a receipt that the model has too.
pub fn sketch_of(receipt: &Receipt) -> Sketch {
    let leg = |leg: &holdfast_ledger::answer::LegReceipt| {
        (leg.limit.clone(), leg.amount, leg.generation, leg.epoch_start_ms)
    };
    Sketch {
        state: receipt.state,
        generation: receipt.generation,
        route: receipt.hold.subject.route.clone(),
        tier: receipt.tier,
        reserved: receipt.reserved,
        cut: receipt.extras.as_ref().map_or(Amounts::NONE, |extras| extras.asked),
        legs: receipt.hold.legs.iter().map(leg).collect(),
        reserved_at_ms: receipt.reserved_at_ms,
        reserved_revision: receipt.reserved_revision,
        expires_at_ms: receipt.expires_at_ms,
        operation: receipt.operation.clone(),
        started_at_ms: receipt.started_at_ms,
        actual: receipt.actual,
        estimated: receipt.extras.as_ref().is_some_and(|extras| extras.estimate.is_some()),
        resolved: receipt.extras.as_ref().is_some_and(|extras| extras.resolved_by.is_some()),
        corrected: receipt.correction().map(|correction| (correction.actual, correction.debt)),
        ended_at_ms: receipt.ended_at_ms,
        debt: receipt.debt,
        shadow: receipt.shadow.as_deref().map(shadow_of),
    }
}

fn shadow_of(decision: &ShadowDecision) -> Shadow {
    match decision {
        ShadowDecision::Admitted { tier } => Shadow::Admitted(*tier),
        ShadowDecision::Rejected(no) => {
            Shadow::rejected(no.generation, &no.limit, no.level, no.unit, no.reason)
        }
        ShadowDecision::Undecided(_) => Shadow::Undecided,
    }
}

/// How often the shadow lane decided what, in book and model.
pub fn compare_shadow(book: &Book, model: &Model) -> Result<(), String> {
    let mut found: BTreeMap<RouteName, [u64; 5]> = BTreeMap::new();
    for counts in book.shadow_counts() {
        let [normal, light, heavy] = counts.admitted;
        let rejected = counts.rejected.values().sum();
        found.insert(counts.route.clone(), [normal, light, heavy, rejected, counts.undecided]);
    }
    let mut wanted: BTreeMap<RouteName, [u64; 5]> = BTreeMap::new();
    for ((route, decision), times) in &model.shadow {
        let place = match decision {
            Shadow::Admitted(Tier::Normal) => 0,
            Shadow::Admitted(Tier::DegradedLight) => 1,
            Shadow::Admitted(Tier::DegradedHeavy) => 2,
            Shadow::Rejected(..) => 3,
            Shadow::Undecided => 4,
        };
        wanted.entry(route.clone()).or_default()[place] += times;
    }
    if found == wanted {
        Ok(())
    } else {
        Err(format!("the book counts {found:?} in shadow\nand the model {wanted:?}"))
    }
}

/// Every roll-back with what is open of it, in book and model.
pub fn compare_drains(book: &Book, model: &Model, at_ms: u64) -> Result<(), String> {
    let shown = |drain: &Drain| {
        let RolledBack { restored, first } = drain.rolled_back;
        let debts = drain.debts.iter().map(|(limit, owed)| (limit.clone(), owed.lineages, owed.debt as i128));
        let held = drain.held.map(|held| held as i128);
        let open = [drain.reserved, drain.started, drain.usage_unknown];
        (drain.generation, restored, first, open, held, debts.collect::<Vec<_>>())
    };
    let mut wanted = Vec::new();
    for era in &model.eras {
        let Some((restored, first)) = era.rolled_back else { continue };
        let covers = |generation: u64| generation >= first && generation < era.generation;
        let (mut open, mut held) = ([0; 3], [0; 4]);
        for found in model.reservations.iter().filter(|found| covers(found.receipt.generation)) {
            match found.state_at(at_ms) {
                State::Reserved | State::Expiring => open[0] += 1,
                State::Started => open[1] += 1,
                State::UsageUnknown => open[2] += 1,
                _ => continue,
            }
            found
                .receipt
                .reserved
                .iter()
                .for_each(|(unit, amount)| held[unit as usize] += i128::from(amount));
        }
        let mut debts: BTreeMap<LimitId, (u64, i128)> = BTreeMap::new();
        for key in model.keys().into_iter().filter(|key| key.lane == Lane::Enforced) {
            let balance = model.balance(&key, at_ms);
            if balance.debt > 0 && covers(balance.owed_since) {
                let known = debts.entry(key.limit).or_default();
                *known = (known.0 + 1, known.1 + balance.debt);
            }
        }
        let debts = debts.into_iter().map(|(limit, (lineages, debt))| (limit, lineages, debt)).collect();
        wanted.push((era.generation, restored, first, open, held, debts));
    }
    let found: Vec<_> = book.drains(at_ms).iter().map(shown).collect();
    if found == wanted {
        return Ok(());
    }
    Err(format!("at {at_ms} the book drains {found:#?}\nand the model {wanted:#?}"))
}

/// The parts of an adjustment's receipt that the model has too.
fn booked_of(receipt: &AdjustmentReceipt) -> Booked {
    let figures = |standing: &Standing| {
        let used = receipt.epoch_start_ms.map(|_| i128::from(standing.used));
        let (limit, remaining) = (standing.limit_amount.map(i128::from), standing.remaining.map(i128::from));
        (limit, remaining, i128::from(standing.held), used, i128::from(standing.debt))
    };
    Booked {
        generation: receipt.generation,
        epoch_start_ms: receipt.epoch_start_ms,
        before: figures(&receipt.before),
        after: figures(&receipt.after),
    }
}

/// The first difference between an answer and what the model says.
pub fn compare_answer(answer: &Answer, verdict: &Verdict, model: &Model) -> Result<(), String> {
    let same = match (answer, verdict) {
        (Answer::Reservation(receipt), Verdict::Receipt(sketch)) => sketch_of(receipt) == **sketch,
        (Answer::Tombstone { .. }, Verdict::Tombstone) => true,
        (Answer::Published { generation, changed }, Verdict::Published { generation: g, changed: c }) => {
            generation == g && changed == c
        }
        (Answer::Frozen { changed }, Verdict::Frozen { changed: c }) => changed == c,
        (Answer::Unfrozen { changed }, Verdict::Unfrozen { changed: c }) => changed == c,
        (Answer::Webhook { changed }, Verdict::Webhook { changed: c }) => changed == c,
        (Answer::Adjusted(receipt), Verdict::Adjusted(booked)) => booked_of(receipt) == **booked,
        (Answer::Ticked { .. } | Answer::Rules { .. }, Verdict::Done) => true,
        (Answer::Refused(Refusal::Rejected(rejection)), Verdict::Rejected(no)) => {
            check_wait(rejection, no, model)?;
            same_rejection(rejection, no)
        }
        (Answer::Refused(refusal), verdict) => same_refusal(refusal, verdict),
        _ => false,
    };
    if same { Ok(()) } else { Err(format!("the book answers {answer:#?}\nand the model says {verdict:#?}")) }
}

fn same_refusal(refusal: &Refusal, verdict: &Verdict) -> bool {
    match (refusal, verdict) {
        (Refusal::Invalid { .. }, Verdict::Invalid) | (Refusal::NotFound, Verdict::NotFound) => true,
        (Refusal::Conflict { state }, Verdict::Conflict(s))
        | (Refusal::WrongState { state }, Verdict::WrongState(s)) => state == s,
        (Refusal::IdTooOld { floor_ms }, Verdict::IdTooOld(floor)) => floor_ms == floor,
        (Refusal::IdInFuture { latest_ms }, Verdict::IdInFuture(latest)) => latest_ms == latest,
        (Refusal::AdjustmentConflict, Verdict::AdjustmentConflict) => true,
        (Refusal::EpochClosed { running_start_ms }, Verdict::EpochClosed(running)) => {
            running_start_ms == running
        }
        (Refusal::GenerationMismatch { generation }, Verdict::GenerationMismatch(g)) => generation == g,
        (Refusal::Destructive { losses }, Verdict::Destructive(wanted)) => {
            let shown = losses.iter().map(|loss| {
                let (held, debt) = (loss.held as i128, loss.debt as i128);
                (loss.limit.clone(), loss.change, loss.reservations, held, debt)
            });
            shown.eq(wanted.iter().cloned())
        }
        _ => false,
    }
}

fn same_rejection(found: &Rejection, no: &No) -> bool {
    if found.reason == Reason::Frozen && no.reason == Reason::Frozen {
        return found.generation == no.generation && found.retry_after_ms.is_none();
    }
    let same_place = found.limit == no.limit && found.level == no.level && found.unit == no.unit;
    found.generation == no.generation && same_place && found.reason == no.reason
}

/// How far ahead "never" is tried out; less than what the calendars' bounds are known for.
const NEVER_MS: u64 = 200_000;

/// Retry-After is tried out on the model: if nothing happens, what was refused fits then, and not a millisecond earlier.
fn check_wait(found: &Rejection, no: &No, model: &Model) -> Result<(), String> {
    let now = model.clock_ms;
    let problem = match found.retry_after_ms {
        None if model.fits(&no.asks, now + NEVER_MS) && no.reason != Reason::Frozen => {
            "names no wait, and yet it ends"
        }
        Some(_) if no.hint => return Ok(()),
        Some(wait) if !model.fits(&no.asks, now + wait) => "is too early",
        Some(wait) if wait > 0 && model.fits(&no.asks, now + wait - 1) => "is longer than it has to be",
        _ => return Ok(()),
    };
    Err(format!("the Retry-After {problem}: {found:#?}\nof {no:#?}"))
}

/// Every quota of a tenant and user, at a time, in book and model.
pub fn compare_quotas(
    book: &Book,
    model: &Model,
    tenant: &TenantId,
    user: Option<&UserId>,
    at_ms: u64,
) -> Result<(), String> {
    let mut lines = book.quota(tenant, user, at_ms);
    lines.extend(book.quota_in_shadow(tenant, user, at_ms));
    lines.extend([Lane::Enforced, Lane::Shadow].into_iter().flat_map(|lane| book.quota_global(lane, at_ms)));
    for (limit, key) in model.lineages_of(tenant, user) {
        let of_key =
            |line: &&QuotaLine| line.limit == limit.id && line.user == key.user && line.lane == key.lane;
        let found = lines.iter().find(of_key);
        let balance = model.balance(&key, at_ms);
        let used = balance.epoch.is_some() && balance.spent > 0;
        let stands = balance.held > 0 || used || balance.debt > 0;
        if key.lane == Lane::Shadow && found.is_none() && !stands {
            // The shadow lane shows what was booked in it, as long as it matters.
            continue;
        }
        let Some(line) = found else { return Err(format!("the book has no quota line of {key}")) };
        let (shown, wanted) = (shown(line, &balance), wanted(&balance));
        if shown != wanted {
            return Err(format!(
                "at {at_ms} the book shows {key} as\n{shown:?}\nand the model as\n{wanted:?}\n{line:?}\n{balance:?}"
            ));
        }
    }
    Ok(())
}

/// What both sides can say of a quota: its figures, epoch and reset.
type Line = (Figures, Option<u64>, Option<u64>);

fn shown(line: &QuotaLine, balance: &Balance) -> Line {
    let is_period = balance.epoch.is_some();
    let figures = (
        line.limit_amount.map(i128::from),
        line.remaining.map(i128::from),
        i128::from(line.held),
        is_period.then_some(i128::from(line.used)),
        i128::from(line.debt),
    );
    let epoch = |instant_ms: Option<u64>| instant_ms.filter(|_| is_period);
    (figures, epoch(line.epoch_start_ms), epoch(line.reset_at_ms))
}

fn wanted(balance: &Balance) -> Line {
    let end = balance.epoch.map(|(_, end)| end).filter(|end| *end != u64::MAX);
    (figures_of(balance), balance.epoch.map(|(start, _)| start), end)
}
