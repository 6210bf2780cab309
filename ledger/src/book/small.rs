//! The digest's part of the rows that are few: plans, tenants, calendars, freezes and the header.

use xxhash_rust::xxh3::xxh3_128;

use crate::book::bytes::RowBytes;
use crate::book::lineage::write_calendar;
use crate::ids::{ModelName, RegionName, UserId};
use crate::plan::{Calendar, Override, Overrides};
use crate::query::{PublishedPlan, RolledBack, TenantVersion};
use crate::record::{Freeze, FreezeCause, FreezeScope, Header};

pub(crate) fn hash_plan(plan: &PublishedPlan) -> u128 {
    let mut out = RowBytes::default();
    out.put_u8(6);
    out.put_u64(plan.generation);
    out.put_u64(plan.published_at_ms);
    out.put_text(plan.actor.as_str());
    out.put_text(&plan.document);
    if let Some(RolledBack { restored, first }) = plan.roll_back {
        out.put_u64(restored);
        out.put_u64(first);
    }
    xxh3_128(out.as_slice())
}

pub(crate) fn hash_tenant(version: &TenantVersion) -> u128 {
    let mut out = RowBytes::default();
    out.put_u8(7);
    out.put_text(version.tenant.as_str());
    out.put_u64(version.generation);
    out.put_u64(version.set_at_ms);
    out.put_text(version.actor.as_str());
    out.put_u8(u8::from(version.record.is_some()));
    if let Some(record) = &version.record {
        out.put_optional_text(record.tier.as_ref().map(|tier| tier.as_str()));
        write_overrides(&record.overrides, &mut out);
        out.put_u32(record.users.len() as u32);
        for (user, overrides) in &record.users {
            out.put_text(user.as_str());
            write_overrides(overrides, &mut out);
        }
    }
    xxh3_128(out.as_slice())
}

fn write_overrides(overrides: &Overrides, out: &mut RowBytes) {
    out.put_u32(overrides.len() as u32);
    for (limit, found) in overrides {
        out.put_text(limit.as_str());
        match found {
            Override::Unlimited => out.put_u8(0),
            Override::Amount { amount, burst } => {
                out.put_u8(1);
                out.put_u64(*amount);
                out.put_option(*burst);
            }
        }
    }
}

pub(crate) fn hash_calendar(calendar: &Calendar, bounds_ms: &[u64]) -> u128 {
    let mut out = RowBytes::default();
    out.put_u8(8);
    write_calendar(calendar, &mut out);
    out.put_u32(bounds_ms.len() as u32);
    for bound in bounds_ms {
        out.put_u64(*bound);
    }
    xxh3_128(out.as_slice())
}

pub(crate) fn hash_freeze(freeze: &Freeze) -> u128 {
    let mut out = RowBytes::default();
    out.put_u8(9);
    write_scope(&freeze.scope, &mut out);
    out.put_u64(freeze.at_ms);
    match &freeze.cause {
        FreezeCause::Breach { reservation, limit, level, unit } => {
            out.put_u8(1);
            out.put_text(limit.as_str());
            out.put_u8(*level as u8);
            out.put_u8(*unit as u8);
            out.put_u128(reservation.0);
        }
        FreezeCause::Operator { actor, reason } => {
            out.put_u8(2);
            out.put_text(actor.as_str());
            out.put_text(reason);
        }
    }
    xxh3_128(out.as_slice())
}

pub(crate) fn write_scope(scope: &FreezeScope, out: &mut RowBytes) {
    let FreezeScope { tenant, user, route, model, region } = scope;
    out.put_text(tenant.as_str());
    out.put_optional_text(user.as_ref().map(UserId::as_str));
    out.put_text(route.as_str());
    out.put_optional_text(model.as_ref().map(ModelName::as_str));
    out.put_optional_text(region.as_ref().map(RegionName::as_str));
}

/// The header's part. The log position is left out: two members may stand at different entries without
/// commands and still hold the same book.
pub(crate) fn hash_header(header: &Header) -> u128 {
    let mut out = RowBytes::default();
    out.put_u8(10);
    out.put_u64(header.revision);
    out.put_u64(header.clock_ms);
    out.put_u64(header.id_floor_ms);
    out.put_u64(header.generation);
    out.put_u32(header.rules_version);
    out.put_u64(header.event_sequence);
    xxh3_128(out.as_slice())
}
