//! `holdfast history`: what has ended, from one member's history index.

use std::collections::BTreeMap;

use holdfast_ledger::ids::ReservationId;
use holdfast_proto::v1;
use holdfast_proto::v1::history_entry::What;
use serde_json::{Map, Value, json};

use crate::calls;
use crate::failure::{Failure, Outcome};
use crate::output::{Rows, grouped, put_u64};
use crate::parse;
use crate::settings::Settings;
use crate::show::{at_ms, instant, receipt_document, state, unit};

/// Entries shown when no number is given: what fits on a few screens.
const ENTRIES_DEFAULT: u32 = 100;

/// Options of `history`.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("of").required(true).args(["id", "tenant"]))]
pub struct Args {
    /// One reservation
    id: Option<ReservationId>,
    /// Everything of one tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Only what happened this long ago or later, for example 2h
    #[arg(long, value_name = "DURATION", value_parser = parse::duration_ms)]
    since: Option<u64>,
    /// Only from this revision on
    #[arg(long, value_name = "REVISION", default_value_t = 0)]
    from: u64,
    /// Most entries
    #[arg(long, value_name = "N", default_value_t = ENTRIES_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    most: u32,
}

/// Asks the first member that answers, since each has its own index.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let of = match (&args.id, &args.tenant) {
        (Some(id), _) => v1::read_history_request::Of::Reservation(id.to_string()),
        (None, Some(tenant)) => v1::read_history_request::Of::Tenant(tenant.clone()),
        (None, None) => return Err(Failure::usage("history of what? Name a reservation or a --tenant")),
    };
    let request = v1::ReadHistoryRequest {
        of: Some(of),
        from_revision: args.from,
        since_ms: args.since.map_or(0, |ms| at_ms().saturating_sub(ms)),
        entries_max: args.most,
    };
    let client = calls::client(settings)?;
    let answer = client.history(request).await.map_err(|error| calls::failure("history", error))?;
    let mut document = Map::new();
    put_u64(&mut document, "node", answer.node_id);
    put_u64(&mut document, "complete_from_revision", answer.complete_from_revision);
    put_u64(&mut document, "statements_from_revision", answer.statements_from_revision);
    put_u64(&mut document, "indexed_revision", answer.indexed_revision);
    document.insert("more".into(), answer.more.into());
    document.insert("entries".into(), answer.entries.iter().map(entry_document).collect());
    settings.output.show(&document.into(), || text(&answer))
}

fn entry_document(entry: &v1::HistoryEntry) -> Value {
    match &entry.what {
        Some(What::Ended(receipt)) => {
            json!({"kind": "RESERVATION", "at_ms": entry.at_ms, "reservation": receipt_document(entry.revision, receipt)})
        }
        Some(What::Event(event)) => json!({
            "kind": event.kind,
            "at_ms": entry.at_ms,
            "revision": entry.revision,
            "sequence": event.sequence,
            "tenant": event.tenant,
            "user": event.user,
            "limit": event.limit,
            "text": event.text,
        }),
        Some(What::Statement(statement)) => {
            let subject = statement.subject.clone().unwrap_or_default();
            let columns: BTreeMap<_, _> = statement.columns.iter().collect();
            json!({
                "kind": "STATEMENT",
                "at_ms": entry.at_ms,
                "revision": entry.revision,
                "tenant": subject.tenant,
                "user": subject.user,
                "limit": subject.limit,
                "route": subject.route,
                "model": subject.model,
                "region": subject.region,
                "lane": if statement.shadow { "shadow" } else { "enforced" },
                "unit": unit(statement.unit),
                "generation": statement.generation,
                "epoch": statement.epoch_start_ms.map(instant),
                "columns": columns,
            })
        }
        None => json!({"kind": "UNKNOWN_TO_THIS_VERSION", "at_ms": entry.at_ms, "revision": entry.revision}),
    }
}

fn text(answer: &v1::ReadHistoryResponse) -> String {
    let mut rows = Rows::new(["revision", "time", "what", "who", "detail"]);
    for entry in &answer.entries {
        let (what, who, detail) = match &entry.what {
            Some(What::Ended(receipt)) => (
                state(receipt.state).to_owned(),
                who(&receipt.tenant, receipt.user.as_deref().unwrap_or("")),
                receipt.id.clone(),
            ),
            Some(What::Event(event)) => {
                let detail = [event.limit.as_str(), event.text.as_str()].join(" ").trim().to_owned();
                (event.kind.clone(), who(&event.tenant, &event.user), detail)
            }
            Some(What::Statement(statement)) => {
                let subject = statement.subject.clone().unwrap_or_default();
                let who = who(&subject.tenant.unwrap_or_default(), &subject.user.unwrap_or_default());
                ("STATEMENT".to_owned(), who, statement_detail(&subject.limit, statement))
            }
            None => ("UNKNOWN_TO_THIS_VERSION".to_owned(), String::new(), String::new()),
        };
        rows.add([grouped(entry.revision), instant(entry.at_ms), what, who, detail]);
    }
    let mut text = if answer.entries.is_empty() { "nothing found\n".to_owned() } else { rows.text() };
    if answer.more {
        let next = answer.entries.last().map_or(0, |entry| entry.revision + 1);
        text.push_str(&format!("more follows: --from {next}\n"));
    }
    text.push_str(&reach(answer));
    text
}

/// Limit, epoch and columns of an archived account, for people.
fn statement_detail(limit: &str, statement: &v1::HistoryStatement) -> String {
    let epoch = statement.epoch_start_ms.map_or_else(|| "continuous".to_owned(), instant);
    let lane = if statement.shadow { " in shadow" } else { "" };
    let columns: BTreeMap<_, _> = statement.columns.iter().collect();
    let columns: Vec<_> = columns.iter().map(|(name, sum)| format!("{name} {sum}")).collect();
    format!("{limit}{lane} {epoch} {}: {}", unit(statement.unit), columns.join(", "))
}

/// What the index can vouch for.
fn reach(answer: &v1::ReadHistoryResponse) -> String {
    let v1::ReadHistoryResponse { node_id, complete_from_revision: from, .. } = *answer;
    let v1::ReadHistoryResponse { statements_from_revision: statements, indexed_revision: to, .. } = *answer;
    if from == 0 {
        return format!("index of node {node_id}: not known to be complete from any revision yet\n");
    }
    let later = if statements > from { format!(" (statements from {statements})") } else { String::new() };
    format!("index of node {node_id}: complete from revision {from}{later} to {to}\n")
}

fn who(tenant: &str, user: &str) -> String {
    if user.is_empty() { tenant.to_owned() } else { format!("{tenant}/{user}") }
}
