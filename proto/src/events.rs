//! Events as callers meet them: in the stream, in webhooks, in a history index.

use holdfast_ledger::adjust::{Adjust, Adjustment, AdjustmentReceipt};
use holdfast_ledger::event::{Event, EventKind};
use holdfast_ledger::ids::{ActorName, TenantId};
use holdfast_ledger::record::{FreezeScope, Lane, LineageKey};

use crate::v1;
use crate::words::Word;

/// An event with everything that its kind has, and a text for people.
pub fn encode_event(event: &Event) -> v1::Event {
    let Event { sequence, at_ms, revision, kind } = event;
    let mut wire = described(kind);
    if wire.shadow {
        // Where only the text is shown, it must not look like an alarm.
        wire.text += ", in the shadow lane";
    }
    v1::Event { sequence: *sequence, at_ms: *at_ms, revision: *revision, ..wire }
}

/// The tenant that an event is about, if it is about one.
pub fn tenant_of(kind: &EventKind) -> Option<&TenantId> {
    match kind {
        EventKind::Crossed { lineage, .. }
        | EventKind::Indebted { lineage, .. }
        | EventKind::Repaid { lineage }
        | EventKind::BoostEnded { lineage, .. }
        | EventKind::Forgiven { lineage, .. } => lineage.tenant.as_ref(),
        EventKind::Adjusted(receipt) => receipt.command.lineage.tenant.as_ref(),
        EventKind::Breached { scope, .. }
        | EventKind::Unfrozen { scope, .. }
        | EventKind::Frozen { scope, .. } => Some(&scope.tenant),
        EventKind::UnknownResolved { tenant, .. }
        | EventKind::WebhookSet { tenant, .. }
        | EventKind::TenantSet { tenant, .. } => Some(tenant),
        EventKind::PlanPublished { .. } | EventKind::RolledBack { .. } => None,
    }
}

/// Everything but number and place.
fn described(kind: &EventKind) -> v1::Event {
    match kind {
        EventKind::Crossed { lineage, epoch_start_ms, percent, tier } => v1::Event {
            kind: "CROSSED".into(),
            epoch_start_ms: *epoch_start_ms,
            percent: Some((*percent).into()),
            tier: tier.number(),
            text: format!("{percent} % used: {} begins", tier.as_str()),
            ..about(lineage)
        },
        EventKind::Indebted { lineage, reservation } => v1::Event {
            kind: "INDEBTED".into(),
            reservation: reservation.map(|id| id.to_string()),
            text: match reservation {
                Some(id) => format!("in debt since the settlement of {id}"),
                None => "in debt since an operator's charge".to_owned(),
            },
            ..about(lineage)
        },
        EventKind::Repaid { lineage } => {
            v1::Event { kind: "REPAID".into(), text: "the debt is repaid".into(), ..about(lineage) }
        }
        EventKind::Forgiven { lineage, amount } => v1::Event {
            kind: "FORGIVEN".into(),
            amount: Some(amount.to_string()),
            text: format!("a debt of {amount} ended with its accounting epoch"),
            ..about(lineage)
        },
        EventKind::BoostEnded { lineage, boost } => v1::Event {
            kind: "BOOST_ENDED".into(),
            adjustment: Some(boost.to_string()),
            text: "the boost ended by its time".into(),
            ..about(lineage)
        },
        EventKind::Breached { reservation, scope, lane, unit, limit, frozen } => {
            let past = limit.as_ref().map_or_else(
                || "the execution hard cap".to_owned(),
                |limit| format!("the largest debt of {limit}"),
            );
            let outcome = match lane {
                Lane::Enforced => format!("; frozen: {}", frozen.as_str()),
                Lane::Shadow => String::new(),
            };
            v1::Event {
                kind: "BREACHED".into(),
                shadow: *lane == Lane::Shadow,
                limit: limit.as_ref().map(ToString::to_string),
                unit: unit.number(),
                reservation: Some(reservation.to_string()),
                text: format!("{reservation} on {} went past {past} in {unit}{outcome}", scope.route),
                ..on(scope)
            }
        }
        EventKind::Unfrozen { scope, actor, reason } => {
            v1::Event { kind: "UNFROZEN".into(), ..operators_word(scope, actor, reason) }
        }
        EventKind::Frozen { scope, actor, reason } => {
            v1::Event { kind: "FROZEN".into(), ..operators_word(scope, actor, reason) }
        }
        EventKind::UnknownResolved { reservation, tenant, user, route, actor, reason } => v1::Event {
            kind: "UNKNOWN_RESOLVED".into(),
            tenant: Some(tenant.to_string()),
            user: user.as_ref().map(ToString::to_string),
            route: Some(route.to_string()),
            reservation: Some(reservation.to_string()),
            actor: Some(actor.to_string()),
            reason: Some(reason.clone()),
            text: format!("{reservation} on {route}, by {actor}: {reason}"),
            ..Default::default()
        },
        EventKind::Adjusted(receipt) => adjusted(receipt),
        EventKind::PlanPublished { generation, forced, actor } => v1::Event {
            kind: "PLAN_PUBLISHED".into(),
            generation: Some(*generation),
            forced: *forced,
            actor: Some(actor.to_string()),
            text: format!("generation {generation}, by {actor}{}", if *forced { ", forced" } else { "" }),
            ..Default::default()
        },
        EventKind::RolledBack { generation, restored, first, actor } => v1::Event {
            kind: "ROLLED_BACK".into(),
            generation: Some(*generation),
            restored: Some(*restored),
            first_rolled_back: Some(*first),
            actor: Some(actor.to_string()),
            text: format!(
                "generations {first} to {}, back to {restored}, by {actor}",
                generation.saturating_sub(1)
            ),
            ..Default::default()
        },
        EventKind::WebhookSet { tenant, removed, actor } => v1::Event {
            kind: if *removed { "WEBHOOK_REMOVED" } else { "WEBHOOK_SET" }.into(),
            tenant: Some(tenant.to_string()),
            actor: Some(actor.to_string()),
            text: format!("by {actor}"),
            ..Default::default()
        },
        EventKind::TenantSet { generation, tenant, actor } => v1::Event {
            kind: "TENANT_SET".into(),
            tenant: Some(tenant.to_string()),
            generation: Some(*generation),
            actor: Some(actor.to_string()),
            text: format!("generation {generation}, by {actor}"),
            ..Default::default()
        },
    }
}

/// What an operator did to what a freeze is on.
fn operators_word(scope: &FreezeScope, actor: &ActorName, reason: &str) -> v1::Event {
    v1::Event {
        actor: Some(actor.to_string()),
        reason: Some(reason.to_owned()),
        text: format!("{}, by {actor}: {reason}", scope.route),
        ..on(scope)
    }
}

/// An event that names what a freeze is on.
fn on(scope: &FreezeScope) -> v1::Event {
    let v1::FreezeScope { tenant, user, route, model, region } = scope.into();
    v1::Event { tenant: Some(tenant), user, route: Some(route), model, region, ..Default::default() }
}

/// An event that names whom a lineage is about.
fn about(lineage: &LineageKey) -> v1::Event {
    let v1::LimitSubject { limit, tenant, user, route, model, region } = lineage.into();
    let shadow = lineage.lane == Lane::Shadow;
    v1::Event { limit: Some(limit), tenant, user, route, model, region, shadow, ..Default::default() }
}

fn adjusted(receipt: &AdjustmentReceipt) -> v1::Event {
    let Adjust { id, lineage, what, actor, reason, .. } = &receipt.command;
    let unit = receipt.unit;
    let (kind, amount, did) = match what {
        Adjustment::Grant(amount) => ("ADJUSTED", Some(amount), format!("{amount} {unit} granted")),
        Adjustment::Take(amount) => ("ADJUSTED", Some(amount), format!("{amount} {unit} taken away")),
        Adjustment::Charge(amount) => ("ADJUSTED", Some(amount), format!("{amount} {unit} charged")),
        Adjustment::Correct(amount) => {
            ("ADJUSTED", Some(amount), format!("usage corrected by {amount} {unit}"))
        }
        Adjustment::SetUsed(used) => ("ADJUSTED", Some(used), format!("usage set to {used} {unit}")),
        Adjustment::Boost { amount, until_ms } => {
            ("BOOSTED", Some(amount), format!("{amount} {unit} more until {until_ms}"))
        }
        Adjustment::EndBoost { boost } => ("BOOST_ENDED", None, format!("the boost {boost} ended")),
    };
    v1::Event {
        kind: kind.into(),
        unit: unit.number(),
        epoch_start_ms: receipt.epoch_start_ms,
        amount: amount.map(ToString::to_string),
        adjustment: Some(id.to_string()),
        generation: Some(receipt.generation),
        actor: Some(actor.to_string()),
        reason: Some(reason.clone()),
        text: format!("{did}, by {actor}: {reason}"),
        ..about(lineage)
    }
}
