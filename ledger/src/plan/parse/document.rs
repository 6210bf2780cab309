//! The whole document.

use std::collections::{BTreeMap, BTreeSet};

use super::limits::read_limits;
use super::prices::read_prices;
use super::reader::{Fields, Place, Problems, shorten};
use super::records::{Known, read_overrides, read_record};
use super::routes::read_routes;
use super::scalars::{read_duration_ms, read_name, read_whole};
use super::{PLAN_SCHEMA, ZoneData};
use crate::ids::TierId;
use crate::limits::{
    DURATION_MS_MAX, EVENTS_KEPT_MS, EVENTS_KEPT_MS_MIN, EXPIRING_GRACE_MS, EXPIRING_GRACE_MS_MAX,
    ID_WINDOW_MS, ID_WINDOW_MS_MAX, ID_WINDOW_MS_MIN, TIERS_PER_PLAN_MAX, WEIGHT_MAX,
};
use crate::plan::{Overrides, Plan};

const KEYS: [&str; 11] = [
    "schema",
    "currency",
    "prices",
    "id_window",
    "expiring_grace",
    "events_kept",
    "routes",
    "limits",
    "tiers",
    "tenants",
    "defaults",
];

/// Reads a plan. What it returns is to be used only if there are no problems.
pub(super) fn read_plan(root: &Place<'_>, problems: &mut Problems, zones: &ZoneData<'_>) -> Plan {
    let fields = root.fields(problems, &KEYS);
    read_schema(&fields, problems, PLAN_SCHEMA, true);
    let currency = fields.get("currency").and_then(|place| read_currency(place, problems));
    let currency_text = currency.as_deref();

    let declared = match fields.require(problems, "limits") {
        Some(place) => read_limits(place, problems, currency_text, zones),
        None => BTreeMap::new(),
    };
    let routes = match fields.require(problems, "routes") {
        Some(place) => read_routes(place, problems, currency_text),
        None => Vec::new(),
    };
    let tier_names = declared_tiers(&fields);
    let known = Known { currency: currency_text, limits: &declared, tiers: tier_names };

    let prices = fields.get("prices").and_then(|place| read_prices(place, problems, currency_text));
    let (tiers, weights) = read_tiers(&fields, problems, &known);
    let (default_tier, default_user) = read_defaults(&fields, problems, &known);
    let mut tenants = BTreeMap::new();
    if let Some(place) = fields.get("tenants") {
        for (entry, place) in place.entries(problems, "a mapping from tenants to their records") {
            match entry.key.parse() {
                Ok(tenant) => {
                    tenants.insert(tenant, read_record(&place, problems, &known));
                }
                Err(error) => problems.add(entry.line, place.path, format!("is a tenant id that {error}")),
            }
        }
    }

    let id_window_ms = fields
        .get("id_window")
        .and_then(|place| read_duration_ms(place, problems, ID_WINDOW_MS_MIN, ID_WINDOW_MS_MAX))
        .unwrap_or(ID_WINDOW_MS);
    let expiring_grace_ms = fields
        .get("expiring_grace")
        .and_then(|place| read_duration_ms(place, problems, 1, EXPIRING_GRACE_MS_MAX))
        .unwrap_or(EXPIRING_GRACE_MS);
    let events_kept_ms = fields
        .get("events_kept")
        .and_then(|place| read_duration_ms(place, problems, EVENTS_KEPT_MS_MIN, DURATION_MS_MAX))
        .unwrap_or(EVENTS_KEPT_MS);
    let limits = declared.into_values().flatten().collect();
    Plan {
        currency,
        prices,
        routes,
        limits,
        tiers,
        weights,
        default_tier,
        tenants,
        default_user,
        id_window_ms,
        expiring_grace_ms,
        events_kept_ms,
    }
}

pub(super) fn read_schema(fields: &Fields<'_>, problems: &mut Problems, wanted: &str, required: bool) {
    let found = if required { fields.require(problems, "schema") } else { fields.get("schema") };
    if let Some(place) = found
        && let Some((text, _)) = place.scalar(problems, wanted)
        && text != wanted
    {
        place.complain(problems, format!("must be {wanted}, is {:?}", shorten(text)));
    }
}

fn read_currency(place: &Place<'_>, problems: &mut Problems) -> Option<String> {
    let (text, _) = place.scalar(problems, "a currency code such as CNY")?;
    if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Some(text.to_owned());
    }
    place.complain(
        problems,
        format!("is {:?}; a currency is three capital letters such as CNY", shorten(text)),
    );
    None
}

/// The tiers' names as they stand, so that a fault inside a tier does not make every tenant of it wrong.
fn declared_tiers(fields: &Fields<'_>) -> BTreeSet<String> {
    let ignored = &mut Problems::default();
    let entries = fields.get("tiers").map(|place| place.entries(ignored, "")).unwrap_or_default();
    entries.into_iter().map(|(entry, _)| entry.key.clone()).collect()
}

fn read_tiers(
    fields: &Fields<'_>,
    problems: &mut Problems,
    known: &Known<'_>,
) -> (BTreeMap<TierId, Overrides>, BTreeMap<TierId, u32>) {
    let (mut tiers, mut weights) = (BTreeMap::new(), BTreeMap::new());
    let Some(place) = fields.get("tiers") else { return (tiers, weights) };
    for (entry, place) in place.entries(problems, "a mapping from tiers to their limits") {
        let inner = place.fields(problems, &["limits", "weight"]);
        let overrides = inner.get("limits").map(|place| read_overrides(place, problems, known, false));
        let weight = inner.get("weight").and_then(|place| read_whole(place, problems, 1, WEIGHT_MAX.into()));
        match entry.key.parse::<TierId>() {
            Ok(tier) => {
                if let Some(weight) = weight.and_then(|weight| u32::try_from(weight).ok()) {
                    weights.insert(tier.clone(), weight);
                }
                tiers.insert(tier, overrides.unwrap_or_default());
            }
            Err(error) => problems.add(entry.line, place.path, format!("is a tier id that {error}")),
        }
    }
    if tiers.len() > TIERS_PER_PLAN_MAX {
        place.complain(
            problems,
            format!("has {} tiers; at most {TIERS_PER_PLAN_MAX} are possible", tiers.len()),
        );
    }
    (tiers, weights)
}

/// What holds for tenants and users that nothing else is said of.
fn read_defaults(
    fields: &Fields<'_>,
    problems: &mut Problems,
    known: &Known<'_>,
) -> (Option<TierId>, Overrides) {
    let Some(place) = fields.get("defaults") else { return (None, Overrides::new()) };
    let inner = place.fields(problems, &["tier", "user"]);
    let tier = inner.get("tier").and_then(|place| {
        let tier = read_name::<TierId>(place, problems, "a tier of this plan")?;
        known.check_tier(place, problems, &tier);
        Some(tier)
    });
    let user = inner.get("user").map(|place| {
        let inner = place.fields(problems, &["limits"]);
        inner.get("limits").map(|place| read_overrides(place, problems, known, true)).unwrap_or_default()
    });
    (tier, user.unwrap_or_default())
}
