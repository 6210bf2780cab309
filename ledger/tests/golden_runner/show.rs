//! How answers, accounts and events are written in scripts.

use std::collections::BTreeMap;

use holdfast_ledger::adjust::{Adjustment, AdjustmentReceipt, Standing};
use holdfast_ledger::answer::{Answer, Receipt, Refusal, Rejection};
use holdfast_ledger::event::EventKind;
use holdfast_ledger::loss::LimitLoss;
use holdfast_ledger::query::{Drain, EpochStatement, QuotaLine, RolledBack};
use holdfast_ledger::record::{Account, Columns, Lane, Record};
use holdfast_ledger::shadow::{ShadowCounts, ShadowDecision};
use holdfast_ledger::webhook::WebhookRow;
use holdfast_ledger::{Amounts, Book, Unit};

use super::time;

pub fn amounts(amounts: &Amounts) -> String {
    let parts: Vec<String> = amounts.iter().map(|(unit, amount)| format!("{unit} {amount}")).collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

pub fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Reservation(found) => receipt(found),
        Answer::Tombstone { .. } => "tombstone".to_owned(),
        Answer::Published { generation, changed } => {
            format!("generation {generation}{}", if *changed { "" } else { ", unchanged" })
        }
        Answer::Frozen { changed } => if *changed { "frozen" } else { "was frozen already" }.to_owned(),
        Answer::Unfrozen { changed } => if *changed { "unfrozen" } else { "was not frozen" }.to_owned(),
        Answer::Webhook { changed } => if *changed { "webhook changed" } else { "no change" }.to_owned(),
        Answer::Adjusted(receipt) => format!(
            "adjusted: {}; before: {}, generation {}",
            standing(&receipt.after),
            standing(&receipt.before),
            receipt.generation
        ),
        Answer::Ticked { expired, unknown, forgotten, more } => {
            let more = if *more { ", more is due" } else { "" };
            format!("expired {expired}, unknown {unknown}, forgotten {forgotten}{more}")
        }
        Answer::Rules { rules_version } => format!("rules version {rules_version}"),
        Answer::Refused(found) => refusal(found),
    }
}

fn standing(standing: &Standing) -> String {
    let number = |amount: Option<u64>| amount.map_or("null".to_owned(), |amount| amount.to_string());
    format!(
        "used {}, held {}, limit {}, remaining {}, debt {}",
        standing.used,
        standing.held,
        number(standing.limit_amount),
        number(standing.remaining),
        standing.debt
    )
}

fn adjusted(receipt: &AdjustmentReceipt) -> String {
    let what = match receipt.command.what {
        Adjustment::Grant(amount) => format!("granted {amount}"),
        Adjustment::Take(amount) => format!("took {amount}"),
        Adjustment::Charge(amount) => format!("charged {amount}"),
        Adjustment::Correct(amount) => format!("corrected {amount}"),
        Adjustment::SetUsed(used) => format!("set used to {used}"),
        Adjustment::Boost { amount, until_ms } => {
            format!("boosted by {amount} until {}", time::show(until_ms))
        }
        Adjustment::EndBoost { .. } => "ended a boost".to_owned(),
    };
    let command = &receipt.command;
    format!("adjusted {}: {what}, by {}: {}", command.lineage, command.actor, command.reason)
}

pub fn receipt(receipt: &Receipt) -> String {
    let mut text =
        format!("{} {} {}", receipt.state.as_str(), receipt.tier.as_str(), amounts(&receipt.reserved));
    let extras = receipt.extras.as_deref().cloned().unwrap_or_default();
    if !extras.asked.is_empty() {
        text += &format!(" of {}", amounts(&extras.asked));
    }
    text += &format!(", generation {}", receipt.generation);
    if let Some(key) = &extras.key {
        text += &format!(", key {key}");
    }
    if let Some(decision) = &receipt.shadow {
        text += &format!(", in shadow ({})", self::decision(decision));
    }
    match (&receipt.actual, receipt.ended_at_ms) {
        (Some(actual), Some(ended)) => {
            let word = if extras.estimate.is_some() { "estimated" } else { "used" };
            text += &format!(", {word} {}, ended {}", amounts(actual), time::show(ended));
            if !receipt.debt.is_empty() {
                text += &format!(", debt {}", amounts(&receipt.debt));
            }
        }
        (None, Some(ended)) => text += &format!(", ended {}", time::show(ended)),
        _ => text += &format!(", until {}", time::show(receipt.expires_at_ms)),
    }
    if let Some(actor) = &extras.resolved_by {
        text += &format!(", by {actor}'s word");
    }
    if let Some(correction) = receipt.correction() {
        let at = time::show(correction.at_ms);
        text += &format!(", corrected to {} {at}", amounts(&correction.actual));
        if !correction.debt.is_empty() {
            text += &format!(", debt then {}", amounts(&correction.debt));
        }
    }
    text
}

fn decision(decision: &ShadowDecision) -> String {
    match decision {
        ShadowDecision::Admitted { tier } => format!("would be admitted {}", tier.as_str()),
        ShadowDecision::Rejected(found) => format!("would be {}", rejection(found)),
        ShadowDecision::Undecided(why) => format!("undecided: {}", why.as_str()),
    }
}

pub fn shadow_counts(counts: &ShadowCounts) -> String {
    let [normal, light, heavy] = counts.admitted;
    let rejected: Vec<String> =
        counts.rejected.iter().map(|(limit, times)| format!("{limit} {times}")).collect();
    format!(
        "{} since {}: normal {normal}, light {light}, heavy {heavy}, rejected [{}], undecided {}",
        counts.route,
        time::show(counts.since_ms),
        rejected.join(", "),
        counts.undecided
    )
}

pub fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Invalid { field, problem } => format!("invalid {field}: {problem}"),
        Refusal::Conflict { state } => format!("conflict: {}", state.as_str()),
        Refusal::WrongState { state } => format!("wrong state: {}", state.as_str()),
        Refusal::NotFound => "not found".to_owned(),
        Refusal::IdTooOld { floor_ms } => format!("id too old: floor {}", time::show(*floor_ms)),
        Refusal::IdInFuture { latest_ms } => format!("id in future: latest {}", time::show(*latest_ms)),
        Refusal::GenerationMismatch { generation } => {
            format!("generation mismatch: {generation} is in force")
        }
        Refusal::Destructive { losses } => {
            let losses: Vec<String> = losses.iter().map(loss).collect();
            format!("destructive: {}", losses.join("; "))
        }
        Refusal::AdjustmentConflict => "conflict: adjustment".to_owned(),
        Refusal::EpochClosed { running_start_ms } => {
            let running = running_start_ms.map_or("continuous".to_owned(), time::show);
            format!("epoch closed: {running} runs")
        }
        Refusal::Overloaded { ceiling } => format!("overloaded: {ceiling}"),
        Refusal::Rejected(found) => rejection(found),
    }
}

pub fn drain(drain: &Drain) -> String {
    let RolledBack { restored, first } = drain.rolled_back;
    let mut text =
        format!("{} rolled {first} to {} back to {restored}", drain.generation, drain.generation - 1);
    if drain.is_done() {
        return text + ": nothing is open";
    }
    let Drain { reserved, started, usage_unknown, .. } = drain;
    text += &format!(": reserved {reserved}, started {started}, unknown {usage_unknown}, held");
    for (unit, held) in Unit::ALL.iter().zip(drain.held).filter(|(_, held)| *held > 0) {
        text += &format!(" {unit} {held}");
    }
    for (limit, debt) in &drain.debts {
        text += &format!(", debt of {limit} {} on {}", debt.debt, debt.lineages);
    }
    text
}

pub fn loss(loss: &LimitLoss) -> String {
    format!("{} {loss}", loss.limit)
}

fn rejection(found: &Rejection) -> String {
    let reset = found.reset_at_ms.map_or("no reset".to_owned(), |at| format!("reset {}", time::show(at)));
    let retry = found.retry_after_ms.map_or("no retry".to_owned(), |ms| format!("retry after {ms} ms"));
    format!(
        "rejected: {} by {} ({} {}), {reset}, {retry}",
        found.reason.as_str(),
        found.limit,
        found.level.as_str(),
        found.unit
    )
}

fn columns(columns: &Columns) -> String {
    let came = [
        ("opening", columns.opening),
        ("refilled", columns.refilled),
        ("granted", columns.granted),
        ("corrected", columns.corrected),
        ("shards_back", columns.shards_back),
        ("moved_in", columns.moved_in),
        ("rule_raise", columns.rule_raise),
        ("forgiven", columns.forgiven),
        ("issued", columns.overdraft_issued),
    ];
    let went = [
        ("reserved", columns.reserved),
        ("spent", columns.spent),
        ("to_shards", columns.to_shards),
        ("carried_forward", columns.carried_forward),
        ("forfeited", columns.forfeited),
        ("repaid", columns.overdraft_repaid),
    ];
    let list = |parts: &[(&str, u128)]| {
        let shown: Vec<String> = parts
            .iter()
            .filter(|(_, amount)| *amount > 0)
            .map(|(name, amount)| format!("{name} {amount}"))
            .collect();
        shown.join(", ")
    };
    let went = list(&went);
    let went = if went.is_empty() { went } else { format!(", {went}") };
    format!("{} | available {}{went}", list(&came), columns.available)
}

fn account(account: &Account) -> String {
    let epoch = account.epoch_start_ms.map_or(String::new(), |at| format!(" {}", time::show(at)));
    format!("g{}{epoch}: {}", account.generation, columns(&account.columns))
}

/// Every account of the book as a line, by lineage and number.
pub fn accounts(book: &mut Book) -> BTreeMap<(String, u32), String> {
    let snapshot = book.snapshot();
    let mut slots = BTreeMap::new();
    let mut shown = BTreeMap::new();
    for record in snapshot.records() {
        match record {
            Record::Lineage(slot, row) => {
                let debt = if row.debt > 0 { format!(", lineage debt {}", row.debt) } else { String::new() };
                let line = format!("{}{debt}", account(&row.current));
                shown.insert((row.key.to_string(), row.current.number), line);
                slots.insert(slot, row.key.to_string());
            }
            Record::ClosedAccount(_, row) => {
                let key = slots.get(&row.lineage).cloned().unwrap();
                shown.insert((key, row.account.number), format!("{} (closed)", account(&row.account)));
            }
            _ => {}
        }
    }
    shown
}

pub fn event(kind: &EventKind) -> String {
    match kind {
        EventKind::Crossed { lineage, percent, tier, .. } => {
            format!("crossed {percent}% {}, {lineage}", tier.as_str())
        }
        EventKind::Indebted { lineage, .. } => format!("indebted {lineage}"),
        EventKind::Repaid { lineage } => format!("repaid {lineage}"),
        EventKind::Forgiven { lineage, amount } => format!("forgiven {amount}, {lineage}"),
        EventKind::BoostEnded { lineage, .. } => format!("boost ended {lineage}"),
        EventKind::Breached { scope, lane, unit, limit, frozen, .. } => {
            let past =
                limit.as_ref().map_or("the execution cap".to_owned(), |limit| format!("the debt of {limit}"));
            let shadow = if *lane == Lane::Shadow { " in shadow" } else { "" };
            let frozen = frozen.as_str();
            format!("breached {past} in {unit}{shadow}, {scope}, frozen {frozen}")
        }
        EventKind::Unfrozen { scope, actor, reason } => format!("unfrozen {scope} by {actor}: {reason}"),
        EventKind::UnknownResolved { tenant, user, route, actor, reason, .. } => {
            let user = user.as_ref().map_or(String::new(), |user| format!(" {user}"));
            format!("unknown resolved, {tenant}{user} on {route} by {actor}: {reason}")
        }
        EventKind::Frozen { scope, actor, reason } => format!("frozen {scope} by {actor}: {reason}"),
        EventKind::Adjusted(receipt) => adjusted(receipt),
        EventKind::PlanPublished { generation, forced, actor } => {
            let forced = if *forced { ", forced" } else { "" };
            format!("published {generation} by {actor}{forced}")
        }
        EventKind::RolledBack { generation, restored, first, actor } => {
            format!("rolled back {first} to {} by {generation}, to {restored} by {actor}", generation - 1)
        }
        EventKind::WebhookSet { tenant, removed, actor } => {
            let did = if *removed { "removed" } else { "set" };
            format!("webhook {did} {tenant} by {actor}")
        }
        EventKind::TenantSet { generation, tenant, actor } => {
            format!("tenant set {tenant}, {generation} by {actor}")
        }
    }
}

pub fn webhook(row: &WebhookRow) -> String {
    let WebhookRow { tenant, webhook, cursor, set_at_ms, actor } = row;
    format!("{tenant}: {webhook:?}, delivered up to {cursor}, set {} by {actor}", time::show(*set_at_ms))
}

pub fn statement(found: &EpochStatement) -> String {
    format!(
        "{} {}: used {}, held {}, generation {}: {}",
        found.lineage,
        time::show(found.epoch_start_ms),
        found.used,
        found.held,
        found.generation,
        columns(&found.columns)
    )
}

pub fn quota(line: &QuotaLine) -> String {
    let number = |amount: Option<u64>| amount.map_or("null".to_owned(), |amount| amount.to_string());
    let mut text = format!(
        "{} ({} {}): used {}, held {}, limit {}, remaining {}, ratio {}.{:04}%, {}",
        line.limit,
        line.level.as_str(),
        line.unit,
        line.used,
        line.held,
        number(line.limit_amount),
        number(line.remaining),
        line.ratio_ppm / 10_000,
        line.ratio_ppm % 10_000,
        line.tier.as_str()
    );
    if line.debt > 0 {
        text += &format!(", debt {}", line.debt);
    }
    if line.suspended {
        text += ", suspended";
    }
    if line.frozen {
        text += ", frozen";
    }
    let reset = line.reset_at_ms.map_or("none".to_owned(), time::show);
    text + &format!(", reset {reset}, generation {}", line.generation)
}
