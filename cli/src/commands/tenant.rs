//! `holdfast tenant`: the records of tenants.

use std::path::PathBuf;

use holdfast_ledger::plan::{Plan, TenantRecord};
use holdfast_proto::v1;
use serde_json::{Map, Value, json};

use super::plan::{actor, published, read_document};
use crate::cluster::{Cluster, Effect};
use crate::failure::{Failure, Outcome};
use crate::output::{Rows, grouped, put_u64};
use crate::parse;
use crate::settings::Settings;

/// What can be done with tenants.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Set a tenant's whole record, or remove it
    Set(Set),
    /// Show a tenant's record
    Get {
        /// The tenant
        tenant: String,
    },
    /// Show every tenant that has a record
    List,
}

/// Options of `tenant set`.
#[derive(Debug, clap::Args)]
#[group(id = "content", required = true, multiple = true)]
pub struct Set {
    /// The tenant
    #[arg(group = "who")]
    tenant: String,
    /// The record as a document (schema tenantRecord.v1)
    #[arg(long, group = "content", conflicts_with_all = ["tier", "limits", "remove"])]
    file: Option<PathBuf>,
    /// The tenant's tier
    #[arg(long, group = "content")]
    tier: Option<String>,
    /// An amount in place of a limit's own, or LIMIT=unlimited; may be repeated
    #[arg(long = "limit", group = "content", value_name = "LIMIT=AMOUNT", value_parser = limit_override)]
    limits: Vec<v1::LimitOverride>,
    /// Remove the record: what the plan says of the tenant, or its defaults, holds again
    #[arg(long, group = "content", conflicts_with_all = ["tier", "limits"])]
    remove: bool,
    /// Refuse unless this generation is in force
    #[arg(long, value_name = "N")]
    expected_generation: Option<u64>,
}

/// Does it.
pub async fn run(settings: &Settings, command: Command) -> Outcome {
    let cluster = Cluster::of(settings)?;
    match command {
        Command::Set(set) => self::set(settings, &cluster, set).await,
        Command::Get { tenant } => get(settings, &cluster, &tenant).await,
        Command::List => list(settings, &cluster).await,
    }
}

async fn set(settings: &Settings, cluster: &Cluster, set: Set) -> Outcome {
    let record = match &set.file {
        Some(path) => Some(record_of_file(cluster, path).await?),
        None if set.remove => None,
        None => Some(v1::TenantRecord { tier: set.tier, overrides: set.limits, users: Vec::new() }),
    };
    let request = v1::SetTenantRequest {
        tenant: set.tenant.clone(),
        record,
        expected_generation: set.expected_generation,
        actor: actor(),
    };
    let answer = cluster
        .ask(&format!("tenant set {}", set.tenant), Effect::Writes, async |call| {
            let request = call.request(request.clone());
            v1::plans_client::PlansClient::new(call.channel).set_tenant(request).await
        })
        .await?;
    published(settings, &answer, &format!("the record of {}", set.tenant))
}

/// A record's document can only be read under the plan in force, which knows the limits and tiers.
async fn record_of_file(cluster: &Cluster, path: &std::path::Path) -> Outcome<v1::TenantRecord> {
    let document = read_document(path)?;
    let in_force = super::plan::get_plan(cluster, None).await?;
    let plan = Plan::parse(&in_force.document)
        .map_err(|_| Failure::failed("the plan in force cannot be read by this version of the program"))?;
    let record = TenantRecord::parse(&document, &plan)
        .map_err(|problems| super::plan::wrong_document(path, &problems))?;
    Ok((&record).into())
}

async fn get(settings: &Settings, cluster: &Cluster, tenant: &str) -> Outcome {
    let answer = cluster
        .ask(&format!("tenant get {tenant}"), Effect::Reads, async |call| {
            let request = call.request(v1::GetTenantRequest { tenant: tenant.to_owned(), stale: false });
            v1::plans_client::PlansClient::new(call.channel).get_tenant(request).await
        })
        .await?;
    let entry = answer.tenant.ok_or_else(|| {
        Failure::failed(format!("tenant {tenant} has no record: the plan's defaults hold for it"))
    })?;
    settings.output.show(&entry_document(&entry), || text(std::slice::from_ref(&entry)))
}

async fn list(settings: &Settings, cluster: &Cluster) -> Outcome {
    let answer = cluster
        .ask("tenant list", Effect::Reads, async |call| {
            let request = call.request(v1::ListTenantsRequest { stale: false });
            v1::plans_client::PlansClient::new(call.channel).list_tenants(request).await
        })
        .await?;
    let document = json!({
        "generation": answer.generation,
        "tenants": answer.tenants.iter().map(entry_document).collect::<Vec<_>>(),
    });
    settings.output.show(&document, || {
        if answer.tenants.is_empty() { "no tenant has a record\n".to_owned() } else { text(&answer.tenants) }
    })
}

fn limit_override(text: &str) -> Result<v1::LimitOverride, String> {
    let (limit, amount) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not LIMIT=AMOUNT, for example tenant-qps=20"))?;
    let rule = match amount {
        "unlimited" => v1::limit_override::Rule::Unlimited(v1::Unlimited {}),
        _ => {
            let amount = parse::whole_number(amount)?;
            v1::limit_override::Rule::Amount(v1::AmountOverride { amount, burst: None })
        }
    };
    Ok(v1::LimitOverride { limit: limit.to_owned(), rule: Some(rule) })
}

fn entry_document(entry: &v1::TenantEntry) -> Value {
    let record = entry.record.clone().unwrap_or_default();
    let users: Map<String, Value> =
        record.users.iter().map(|user| (user.user.clone(), overrides_document(&user.overrides))).collect();
    json!({
        "tenant": entry.tenant,
        "tier": record.tier,
        "limits": overrides_document(&record.overrides),
        "users": users,
    })
}

/// By limit: an amount, an object with amount and burst, or null for unlimited.
fn overrides_document(overrides: &[v1::LimitOverride]) -> Value {
    let mut object = Map::new();
    for one in overrides {
        match &one.rule {
            Some(v1::limit_override::Rule::Amount(amount)) if amount.burst.is_none() => {
                put_u64(&mut object, &one.limit, amount.amount);
            }
            Some(v1::limit_override::Rule::Amount(amount)) => {
                let mut both = Map::new();
                put_u64(&mut both, "amount", amount.amount);
                put_u64(&mut both, "burst", amount.burst.unwrap_or_default());
                object.insert(one.limit.clone(), both.into());
            }
            _ => drop(object.insert(one.limit.clone(), Value::Null)),
        }
    }
    object.into()
}

fn text(entries: &[v1::TenantEntry]) -> String {
    let mut rows = Rows::new(["tenant", "user", "tier", "limit", "amount"]);
    for entry in entries {
        let record = entry.record.clone().unwrap_or_default();
        let tier = record.tier.unwrap_or_default();
        let mut lines: Vec<(String, String, String)> =
            record.overrides.iter().map(|one| (String::new(), one.limit.clone(), amount_text(one))).collect();
        for user in &record.users {
            lines.extend(
                user.overrides.iter().map(|one| (user.user.clone(), one.limit.clone(), amount_text(one))),
            );
        }
        if lines.is_empty() {
            lines.push(Default::default());
        }
        for (user, limit, amount) in lines {
            rows.add([entry.tenant.clone(), user, tier.clone(), limit, amount]);
        }
    }
    rows.text()
}

fn amount_text(one: &v1::LimitOverride) -> String {
    match &one.rule {
        Some(v1::limit_override::Rule::Amount(amount)) => match amount.burst {
            Some(burst) => format!("{} (burst {})", grouped(amount.amount), grouped(burst)),
            None => grouped(amount.amount),
        },
        _ => "unlimited".to_owned(),
    }
}
