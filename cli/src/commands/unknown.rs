//! `holdfast unknown`: reservations whose usage nobody knows, and ending them by an operator's word.

use holdfast_ledger::command::ResolveUnknown;
use holdfast_ledger::ids::{ActorName, ReservationId};
use holdfast_proto::v1;
use serde_json::{Map, Value, json};

use super::plan::actor;
use super::reservation;
use crate::calls;
use crate::failure::{Failure, Outcome};
use crate::output::{Rows, put_u64};
use crate::parse::{self, UnitAmount};
use crate::settings::Settings;
use crate::show::{amounts_text, receipt_document};

/// What can be done about unknown usage.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show them, the oldest first
    List {
        /// Only this tenant's
        #[arg(long)]
        tenant: Option<String>,
    },
    /// End one by your word, marked as yours and audited
    Resolve(Resolve),
}

/// Options of `unknown resolve`.
#[derive(Debug, clap::Args)]
pub struct Resolve {
    /// The reservation
    id: ReservationId,
    /// How much of a unit it used, for example tokens=800; every unit that was held has to be named
    #[arg(long = "actual", value_name = "UNIT=AMOUNT", value_parser = parse::unit_amount)]
    actual: Vec<UnitAmount>,
    /// On what grounds
    #[arg(long)]
    reason: String,
}

/// Does it.
pub async fn run(settings: &Settings, command: Command) -> Outcome {
    match command {
        Command::List { tenant } => list(settings, tenant.as_deref()).await,
        Command::Resolve(args) => resolve(settings, args).await,
    }
}

/// Page after page, until there are no more.
async fn list(settings: &Settings, tenant: Option<&str>) -> Outcome {
    let client = calls::client(settings)?;
    let mut page =
        client.unknowns(tenant, None).await.map_err(|error| calls::failure("unknown list", error))?;
    let mut entries = std::mem::take(&mut page.entries);
    while let (true, Some(last)) = (page.more, entries.last()) {
        let id = last.receipt.as_ref().map(|receipt| receipt.id.clone()).unwrap_or_default();
        let after = v1::UnknownPlace { since_ms: last.since_ms, id };
        page = client
            .unknowns(tenant, Some(after))
            .await
            .map_err(|error| calls::failure("unknown list", error))?;
        entries.append(&mut page.entries);
    }
    let (revision, at_ms) = (page.revision, page.at_ms);
    let documents: Vec<Value> = entries.iter().map(|entry| document(revision, at_ms, entry)).collect();
    settings.output.show(&json!({"revision": revision, "unknown": documents}), || text(at_ms, &entries))
}

fn document(revision: u64, at_ms: u64, entry: &v1::UnknownUsage) -> Value {
    let mut object = Map::new();
    put_u64(&mut object, "since_ms", entry.since_ms);
    put_u64(&mut object, "age_ms", at_ms.saturating_sub(entry.since_ms));
    let receipt = entry.receipt.as_ref().map(|receipt| receipt_document(revision, receipt));
    object.insert("receipt".into(), receipt.into());
    object.into()
}

fn text(at_ms: u64, entries: &[v1::UnknownUsage]) -> String {
    if entries.is_empty() {
        return "the usage of every reservation is known\n".to_owned();
    }
    let mut rows = Rows::new(["reservation", "age", "tenant", "user", "route", "operation", "held"]);
    for entry in entries {
        let receipt = entry.receipt.clone().unwrap_or_default();
        rows.add([
            receipt.id,
            format!("{} s", at_ms.saturating_sub(entry.since_ms) / 1_000),
            receipt.tenant,
            receipt.user.unwrap_or_default(),
            receipt.route,
            receipt.operation.unwrap_or_default(),
            amounts_text(receipt.reserved.as_ref()),
        ]);
    }
    rows.text()
}

async fn resolve(settings: &Settings, args: Resolve) -> Outcome {
    let Resolve { id, actual, reason } = args;
    let actual = parse::amounts(&actual).map_err(Failure::usage)?;
    let actor = ActorName::new(actor()).map_err(|error| Failure::usage(format!("the actor {error}")))?;
    let client = calls::client(settings)?;
    let answer = client.resolve_unknown(&ResolveUnknown { id, actual, actor, reason }).await;
    let decided = answer.map_err(|error| calls::failure(&format!("unknown resolve {id}"), error))?;
    reservation::show(settings, &decided)
}
