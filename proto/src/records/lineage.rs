//! Lineages.

use std::sync::Arc;

use holdfast_ledger::adjust::{Boost, Operated};
use holdfast_ledger::record::{Lane, Lineage, LineageKey};

use super::text;
use super::wide::{number, signed_number, signed_wide, wide};
use crate::adjust::{decode_adjustment_id, encode_adjustment_id};
use crate::field::{FieldError, InField, name, optional_name, required};
use crate::v1;
use crate::words::{Word, word};

pub(super) fn encode(slot: u32, lineage: &Lineage) -> v1::StoredLineage {
    let Lineage {
        key,
        unit,
        kind,
        rule,
        ladder,
        overdraft_max,
        seen_generation,
        replayed_ms,
        refill_remainder,
        epoch_first,
        epoch_end_ms,
        current,
        debt,
        debt_generation,
        carried_in,
        earlier_repaid,
        past_used,
        past_debt,
        crossed,
        archived_debt,
        archived_used,
        legs,
        drop_at_ms,
        operated,
    } = lineage;
    v1::StoredLineage {
        slot,
        key: Some(key.as_ref().into()),
        unit: unit.number(),
        rule: rule.as_ref().map(v1::StoredRule::from),
        ladder: ladder.map(v1::StoredLadder::from),
        overdraft_max: *overdraft_max,
        seen_generation: *seen_generation,
        replayed_ms: *replayed_ms,
        refill_remainder: *refill_remainder,
        epoch_end_ms: *epoch_end_ms,
        current: Some(current.into()),
        debt: wide(*debt),
        carried_in: wide(*carried_in),
        earlier_repaid: wide(*earlier_repaid),
        past_used: signed_wide(*past_used),
        past_debt: signed_wide(*past_debt),
        crossed: (0..=100).filter(|percent| *crossed & (1 << percent) != 0).collect(),
        archived_debt: signed_wide(*archived_debt),
        archived_used: signed_wide(*archived_used),
        legs: *legs,
        drop_at_ms: *drop_at_ms,
        kind: kind.number(),
        epoch_first: *epoch_first,
        net_grants: operated.as_ref().and_then(|operated| signed_wide(operated.net)),
        boosts: operated.iter().flat_map(|operated| &operated.boosts).map(encode_boost).collect(),
        debt_generation: *debt_generation,
    }
}

fn encode_boost(Boost { id, amount, until_ms }: &Boost) -> v1::StoredBoost {
    v1::StoredBoost { id: encode_adjustment_id(*id), amount: *amount, until_ms: *until_ms }
}

fn decode_operated(
    net: Option<v1::SignedWide>,
    boosts: &[v1::StoredBoost],
) -> Result<Option<Box<Operated>>, FieldError> {
    let boost = |wire: &v1::StoredBoost| {
        let id = decode_adjustment_id("boosts.id", &wire.id)?;
        Ok(Boost { id, amount: wire.amount, until_ms: wire.until_ms })
    };
    let boosts = boosts.iter().map(boost).collect::<Result<_, FieldError>>()?;
    let operated = Operated { net: signed_number(net), boosts };
    Ok((operated != Operated::default()).then(|| Box::new(operated)))
}

pub(super) fn decode(wire: v1::StoredLineage) -> Result<Lineage, FieldError> {
    Ok(Lineage {
        key: decode_key("key", wire.key)?,
        unit: word("unit", wire.unit)?,
        kind: word("kind", wire.kind)?,
        rule: wire.rule.map(TryInto::try_into).transpose().in_field("rule")?,
        ladder: wire.ladder.map(TryInto::try_into).transpose().in_field("ladder")?,
        overdraft_max: wire.overdraft_max,
        seen_generation: wire.seen_generation,
        replayed_ms: wire.replayed_ms,
        refill_remainder: wire.refill_remainder,
        epoch_first: wire.epoch_first,
        epoch_end_ms: wire.epoch_end_ms,
        current: required("current", wire.current)?.try_into().in_field("current")?,
        debt: number(wire.debt),
        debt_generation: wire.debt_generation,
        carried_in: number(wire.carried_in),
        earlier_repaid: number(wire.earlier_repaid),
        past_used: signed_number(wire.past_used),
        past_debt: signed_number(wire.past_debt),
        crossed: decode_crossed(&wire.crossed)?,
        archived_debt: signed_number(wire.archived_debt),
        archived_used: signed_number(wire.archived_used),
        legs: wire.legs,
        drop_at_ms: wire.drop_at_ms,
        operated: decode_operated(wire.net_grants, &wire.boosts)?,
    })
}

impl From<&LineageKey> for v1::StoredLineageKey {
    fn from(LineageKey { limit, tenant, user, route, model, region, lane }: &LineageKey) -> Self {
        v1::StoredLineageKey {
            limit: text(limit.as_str()),
            tenant: tenant.as_ref().map(|name| text(name.as_str())),
            user: user.as_ref().map(|name| text(name.as_str())),
            route: route.as_ref().map(|name| text(name.as_str())),
            model: model.as_ref().map(|name| text(name.as_str())),
            region: region.as_ref().map(|name| text(name.as_str())),
            shadow: match lane {
                Lane::Enforced => false,
                Lane::Shadow => true,
            },
        }
    }
}

impl TryFrom<v1::StoredLineageKey> for LineageKey {
    type Error = FieldError;

    fn try_from(wire: v1::StoredLineageKey) -> Result<Self, FieldError> {
        Ok(LineageKey {
            limit: name("limit", &wire.limit)?,
            tenant: optional_name("tenant", wire.tenant.as_deref())?,
            user: optional_name("user", wire.user.as_deref())?,
            route: optional_name("route", wire.route.as_deref())?,
            model: optional_name("model", wire.model.as_deref())?,
            region: optional_name("region", wire.region.as_deref())?,
            lane: if wire.shadow { Lane::Shadow } else { Lane::Enforced },
        })
    }
}

pub(super) fn decode_key(
    field: &str,
    wire: Option<v1::StoredLineageKey>,
) -> Result<Arc<LineageKey>, FieldError> {
    LineageKey::try_from(required(field, wire)?).map(Arc::new).in_field(field)
}

fn decode_crossed(percents: &[u32]) -> Result<u128, FieldError> {
    percents.iter().try_fold(0, |crossed, percent| match percent {
        0..=100 => Ok(crossed | 1 << percent),
        _ => Err(FieldError::new("crossed", format!("has {percent} percent"))),
    })
}
