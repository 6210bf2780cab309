//! `holdfast tenant`: the records of tenants.

use std::path::PathBuf;

use holdfast_client::Client;
use holdfast_ledger::ids::{LimitId, TierId};
use holdfast_ledger::plan::{Override, Overrides, Plan, TenantRecord};
use holdfast_proto::v1;
use serde_json::{Map, Value, json};

use super::plan::{actor, published, read_document};
use crate::calls;
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
    /// Send a tenant's events to an address
    #[command(subcommand)]
    Webhook(super::webhook::Command),
}

/// Options of `tenant set`.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("content").required(true).multiple(true).args(["file", "tier", "limits", "remove"]))]
pub struct Set {
    /// The tenant
    tenant: String,
    /// The record as a document (schema tenantRecord.v1)
    #[arg(long, conflicts_with_all = ["tier", "limits", "remove"])]
    file: Option<PathBuf>,
    /// The tenant's tier
    #[arg(long)]
    tier: Option<TierId>,
    /// An amount in place of a limit's own, or LIMIT=unlimited; may be repeated
    #[arg(long = "limit", value_name = "LIMIT=AMOUNT", value_parser = limit_override)]
    limits: Vec<(LimitId, Override)>,
    /// Remove the record: what the plan says of the tenant, or its defaults, holds again
    #[arg(long, conflicts_with_all = ["tier", "limits"])]
    remove: bool,
    /// Refuse unless this generation is in force
    #[arg(long, value_name = "N")]
    expected_generation: Option<u64>,
}

/// Does it.
pub async fn run(settings: &Settings, command: Command) -> Outcome {
    let client = calls::client(settings)?;
    match command {
        Command::Set(set) => self::set(settings, &client, set).await,
        Command::Get { tenant } => get(settings, &client, &tenant).await,
        Command::List => list(settings, &client).await,
        Command::Webhook(command) => super::webhook::run(settings, &client, command).await,
    }
}

async fn set(settings: &Settings, client: &Client, set: Set) -> Outcome {
    let record = match &set.file {
        Some(path) => Some(record_of_file(client, path).await?),
        None if set.remove => None,
        None => {
            let overrides: Overrides = set.limits.into_iter().collect();
            Some(TenantRecord { tier: set.tier, overrides, ..TenantRecord::default() })
        }
    };
    let answer = client
        .set_tenant(&set.tenant, record.as_ref(), set.expected_generation, &actor())
        .await
        .map_err(|error| calls::failure(&format!("tenant set {}", set.tenant), error))?;
    published(settings, &answer, &format!("the record of {}", set.tenant))
}

/// A record's document can only be read under the plan in force, which knows the limits and tiers.
async fn record_of_file(client: &Client, path: &std::path::Path) -> Outcome<TenantRecord> {
    let document = read_document(path)?;
    let in_force = super::plan::get_plan(client, None).await?;
    let plan = Plan::parse(&in_force.document)
        .map_err(|_| Failure::failed("the plan in force cannot be read by this version of the program"))?;
    TenantRecord::parse(&document, &plan).map_err(|problems| super::plan::wrong_document(path, &problems))
}

async fn get(settings: &Settings, client: &Client, tenant: &str) -> Outcome {
    let what = format!("tenant get {tenant}");
    let answer = client.tenant(tenant).await.map_err(|error| calls::failure(&what, error))?;
    let entry = answer.tenant.ok_or_else(|| {
        Failure::failed(format!("tenant {tenant} has no record: the plan's defaults hold for it"))
    })?;
    settings.output.show(&entry_document(&entry), || text(std::slice::from_ref(&entry)))
}

async fn list(settings: &Settings, client: &Client) -> Outcome {
    let answer = client.tenants().await.map_err(|error| calls::failure("tenant list", error))?;
    let document = json!({
        "generation": answer.generation,
        "tenants": answer.tenants.iter().map(entry_document).collect::<Vec<_>>(),
    });
    settings.output.show(&document, || {
        if answer.tenants.is_empty() { "no tenant has a record\n".to_owned() } else { text(&answer.tenants) }
    })
}

fn limit_override(text: &str) -> Result<(LimitId, Override), String> {
    let (limit, amount) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not LIMIT=AMOUNT, for example tenant-qps=20"))?;
    let limit = limit.parse::<LimitId>().map_err(|e| format!("the limit {e}"))?;
    let rule = match amount {
        "unlimited" => Override::Unlimited,
        _ => Override::Amount { amount: parse::whole_number(amount)?, burst: None },
    };
    Ok((limit, rule))
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

/// By limit, and nothing but limits, so that an amount over 2^53 has no text beside it: an amount, an object with amount and burst, or null for unlimited.
fn overrides_document(overrides: &[v1::LimitOverride]) -> Value {
    let mut object = Map::new();
    for one in overrides {
        match &one.rule {
            Some(v1::limit_override::Rule::Amount(amount)) if amount.burst.is_none() => {
                object.insert(one.limit.clone(), amount.amount.into());
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
