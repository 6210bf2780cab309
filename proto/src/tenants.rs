//! Tenant records, shared by the public service and the stored command.

use std::collections::BTreeMap;

use holdfast_ledger::plan::{Override, Overrides, TenantRecord};

use crate::field::{FieldError, InField, name, optional_name, required};
use crate::v1;
use crate::v1::limit_override::Rule;

impl From<&TenantRecord> for v1::TenantRecord {
    fn from(record: &TenantRecord) -> Self {
        let TenantRecord { tier, overrides, users } = record;
        v1::TenantRecord {
            tier: tier.as_ref().map(|tier| tier.as_str().to_owned()),
            overrides: encode_overrides(overrides),
            users: users
                .iter()
                .map(|(user, overrides)| v1::UserOverrides {
                    user: user.as_str().to_owned(),
                    overrides: encode_overrides(overrides),
                })
                .collect(),
        }
    }
}

impl TryFrom<&v1::TenantRecord> for TenantRecord {
    type Error = FieldError;

    fn try_from(wire: &v1::TenantRecord) -> Result<Self, FieldError> {
        let mut users = BTreeMap::new();
        for (at, user) in wire.users.iter().enumerate() {
            let within = |error: FieldError| error.inside(&format!("users[{at}]"));
            let overrides = decode_overrides(&user.overrides).map_err(within)?;
            if users.insert(name("user", &user.user).map_err(within)?, overrides).is_some() {
                return Err(within(FieldError::new("user", "is named twice")));
            }
        }
        Ok(TenantRecord {
            tier: optional_name("tier", wire.tier.as_deref())?,
            overrides: decode_overrides(&wire.overrides)?,
            users,
        })
    }
}

pub(crate) fn encode_overrides(overrides: &Overrides) -> Vec<v1::LimitOverride> {
    let one = |(limit, rule): (&holdfast_ledger::ids::LimitId, &Override)| v1::LimitOverride {
        limit: limit.as_str().to_owned(),
        rule: Some(match *rule {
            Override::Unlimited => Rule::Unlimited(v1::Unlimited {}),
            Override::Amount { amount, burst } => Rule::Amount(v1::AmountOverride { amount, burst }),
        }),
    };
    overrides.iter().map(one).collect()
}

pub(crate) fn decode_overrides(wire: &[v1::LimitOverride]) -> Result<Overrides, FieldError> {
    let mut overrides = Overrides::new();
    for (at, one) in wire.iter().enumerate() {
        let within = |error: FieldError| error.inside(&format!("overrides[{at}]"));
        let rule = match required("rule", one.rule.as_ref()).map_err(within)? {
            Rule::Unlimited(v1::Unlimited {}) => Override::Unlimited,
            Rule::Amount(v1::AmountOverride { amount, burst }) => {
                Override::Amount { amount: *amount, burst: *burst }
            }
        };
        if overrides.insert(name("limit", &one.limit).map_err(within)?, rule).is_some() {
            return Err(within(FieldError::new("limit", "is named twice")));
        }
    }
    Ok(overrides)
}

/// The record of a message, where its absence means removal.
pub(crate) fn optional_record(
    wire: Option<&v1::TenantRecord>,
) -> Result<Option<std::sync::Arc<TenantRecord>>, FieldError> {
    wire.map(|wire| TenantRecord::try_from(wire).map(std::sync::Arc::new)).transpose().in_field("record")
}
