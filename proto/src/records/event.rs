//! Events.

use holdfast_ledger::AdjustmentId;
use holdfast_ledger::event::{Event, EventKind};
use holdfast_ledger::record::Lane;

use super::lineage::decode_key;
use super::rule::small;
use super::text;
use super::wide::{number, wide};
use crate::adjust;
use crate::field::{FieldError, InField, fixed, name, optional_name, required};
use crate::log::{decode_id, encode_id};
use crate::operators::decode_scope;
use crate::v1;
use crate::v1::stored_event::Kind as Wire;
use crate::words::{Word, word};

impl From<&Event> for v1::StoredEvent {
    fn from(Event { sequence, at_ms, revision, kind }: &Event) -> Self {
        v1::StoredEvent {
            sequence: *sequence,
            at_ms: *at_ms,
            revision: *revision,
            kind: Some(encode_kind(kind)),
        }
    }
}

impl TryFrom<v1::StoredEvent> for Event {
    type Error = FieldError;

    fn try_from(wire: v1::StoredEvent) -> Result<Self, FieldError> {
        let kind = decode_kind(required("kind", wire.kind)?)?;
        Ok(Event { sequence: wire.sequence, at_ms: wire.at_ms, revision: wire.revision, kind })
    }
}

fn encode_kind(kind: &EventKind) -> Wire {
    match kind {
        EventKind::Crossed { lineage, epoch_start_ms, percent, tier } => Wire::Crossed(v1::EventCrossed {
            lineage: Some(lineage.as_ref().into()),
            epoch_start_ms: *epoch_start_ms,
            percent: (*percent).into(),
            tier: tier.number(),
        }),
        EventKind::Indebted { lineage, reservation } => Wire::Indebted(v1::EventIndebted {
            lineage: Some(lineage.as_ref().into()),
            reservation: reservation.map(encode_id).unwrap_or_default(),
        }),
        EventKind::Repaid { lineage } => {
            Wire::Repaid(v1::EventRepaid { lineage: Some(lineage.as_ref().into()) })
        }
        EventKind::Forgiven { lineage, amount } => Wire::Forgiven(v1::EventForgiven {
            lineage: Some(lineage.as_ref().into()),
            amount: wide(*amount),
        }),
        EventKind::Breached { reservation, scope, lane, unit, limit, frozen } => {
            Wire::Breached(v1::EventBreached {
                reservation: encode_id(*reservation),
                scope: Some(scope.into()),
                unit: unit.number(),
                limit: limit.as_ref().map(|limit| text(limit.as_str())),
                frozen: frozen.number(),
                shadow: *lane == Lane::Shadow,
            })
        }
        EventKind::Unfrozen { scope, actor, reason } => Wire::Unfrozen(v1::EventUnfrozen {
            scope: Some(scope.into()),
            actor: text(actor.as_str()),
            reason: reason.clone(),
        }),
        EventKind::UnknownResolved { reservation, tenant, user, route, actor, reason } => {
            Wire::UnknownResolved(v1::EventUnknownResolved {
                reservation: encode_id(*reservation),
                tenant: text(tenant.as_str()),
                user: user.as_ref().map(|user| text(user.as_str())),
                route: text(route.as_str()),
                actor: text(actor.as_str()),
                reason: reason.clone(),
            })
        }
        EventKind::Frozen { scope, actor, reason } => Wire::Frozen(v1::EventFrozen {
            scope: Some(scope.into()),
            actor: text(actor.as_str()),
            reason: reason.clone(),
        }),
        EventKind::BoostEnded { lineage, boost } => Wire::BoostEnded(v1::EventBoostEnded {
            lineage: Some(lineage.as_ref().into()),
            boost: adjust::encode_adjustment_id(*boost),
        }),
        EventKind::WebhookSet { tenant, removed, actor } => Wire::WebhookSet(v1::EventWebhookSet {
            tenant: text(tenant.as_str()),
            removed: *removed,
            actor: text(actor.as_str()),
        }),
        EventKind::Adjusted(receipt) => Wire::Adjusted(adjust::encode_stored(receipt, 0)),
        EventKind::PlanPublished { generation, forced, actor } => {
            Wire::PlanPublished(v1::EventPlanPublished {
                generation: *generation,
                actor: text(actor.as_str()),
                forced: *forced,
            })
        }
        EventKind::RolledBack { generation, restored, first, actor } => {
            Wire::RolledBack(v1::EventRolledBack {
                generation: *generation,
                restored: *restored,
                first: *first,
                actor: text(actor.as_str()),
            })
        }
        EventKind::TenantSet { generation, tenant, actor } => Wire::TenantSet(v1::EventTenantSet {
            generation: *generation,
            tenant: text(tenant.as_str()),
            actor: text(actor.as_str()),
        }),
    }
}

fn decode_kind(wire: Wire) -> Result<EventKind, FieldError> {
    Ok(match wire {
        Wire::Crossed(wire) => EventKind::Crossed {
            lineage: decode_key("lineage", wire.lineage).in_field("crossed")?,
            epoch_start_ms: wire.epoch_start_ms,
            percent: small("crossed.percent", wire.percent)?,
            tier: word("crossed.tier", wire.tier)?,
        },
        Wire::Indebted(wire) => EventKind::Indebted {
            lineage: decode_key("lineage", wire.lineage).in_field("indebted")?,
            reservation: match wire.reservation.is_empty() {
                true => None,
                false => Some(decode_id("indebted.reservation", &wire.reservation)?),
            },
        },
        Wire::Repaid(wire) => {
            EventKind::Repaid { lineage: decode_key("lineage", wire.lineage).in_field("repaid")? }
        }
        Wire::Forgiven(wire) => EventKind::Forgiven {
            lineage: decode_key("lineage", wire.lineage).in_field("forgiven")?,
            amount: number(wire.amount),
        },
        Wire::Breached(wire) => EventKind::Breached {
            reservation: decode_id("breached.reservation", &wire.reservation)?,
            scope: decode_scope(wire.scope.as_ref()).in_field("breached")?,
            lane: if wire.shadow { Lane::Shadow } else { Lane::Enforced },
            unit: word("breached.unit", wire.unit)?,
            limit: optional_name("breached.limit", wire.limit.as_deref())?,
            frozen: word("breached.frozen", wire.frozen)?,
        },
        Wire::Unfrozen(wire) => EventKind::Unfrozen {
            scope: decode_scope(wire.scope.as_ref()).in_field("unfrozen")?,
            actor: name("unfrozen.actor", &wire.actor)?,
            reason: wire.reason,
        },
        Wire::UnknownResolved(wire) => EventKind::UnknownResolved {
            reservation: decode_id("unknown_resolved.reservation", &wire.reservation)?,
            tenant: name("unknown_resolved.tenant", &wire.tenant)?,
            user: optional_name("unknown_resolved.user", wire.user.as_deref())?,
            route: name("unknown_resolved.route", &wire.route)?,
            actor: name("unknown_resolved.actor", &wire.actor)?,
            reason: wire.reason,
        },
        Wire::Frozen(wire) => EventKind::Frozen {
            scope: decode_scope(wire.scope.as_ref()).in_field("frozen")?,
            actor: name("frozen.actor", &wire.actor)?,
            reason: wire.reason,
        },
        Wire::BoostEnded(wire) => EventKind::BoostEnded {
            lineage: decode_key("lineage", wire.lineage).in_field("boost_ended")?,
            boost: AdjustmentId(u128::from_be_bytes(fixed("boost_ended.boost", &wire.boost)?)),
        },
        Wire::WebhookSet(wire) => EventKind::WebhookSet {
            tenant: name("webhook_set.tenant", &wire.tenant)?,
            removed: wire.removed,
            actor: name("webhook_set.actor", &wire.actor)?,
        },
        Wire::Adjusted(wire) => {
            EventKind::Adjusted(adjust::decode_stored(wire).in_field("adjusted")?.receipt)
        }
        Wire::PlanPublished(wire) => EventKind::PlanPublished {
            generation: wire.generation,
            forced: wire.forced,
            actor: name("plan_published.actor", &wire.actor)?,
        },
        Wire::RolledBack(wire) => EventKind::RolledBack {
            generation: wire.generation,
            restored: wire.restored,
            first: wire.first,
            actor: name("rolled_back.actor", &wire.actor)?,
        },
        Wire::TenantSet(wire) => EventKind::TenantSet {
            generation: wire.generation,
            tenant: name("tenant_set.tenant", &wire.tenant)?,
            actor: name("tenant_set.actor", &wire.actor)?,
        },
    })
}
