//! `holdfast statements`: what was used in accounting epochs that have ended.

use holdfast_proto::v1;
use serde_json::{Map, Value, json};

use crate::calls;
use crate::failure::Outcome;
use crate::output::{Rows, grouped, put_u64};
use crate::parse;
use crate::settings::Settings;
use crate::show::{instant, unit};

/// Options of `statements`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The tenant
    tenant: String,
    /// One of its users: adds the limits of the user level
    #[arg(long)]
    user: Option<String>,
    /// Only this limit
    #[arg(long)]
    limit: Option<String>,
    /// Only the epoch that begins here
    #[arg(long, value_name = "INSTANT", value_parser = parse::instant_ms)]
    epoch: Option<u64>,
    /// Answer from what the asked member has applied, which may be behind
    #[arg(long)]
    stale: bool,
}

/// Asks and shows.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let Args { tenant, user, limit, epoch, stale } = args;
    let what = format!("statements of {tenant}");
    let request = v1::ListStatementsRequest { tenant, user, limit, epoch_start_ms: epoch, stale };
    let client = calls::client(settings)?;
    let answer = client.statements(request).await.map_err(|error| calls::failure(&what, error))?;
    let mut document = Map::new();
    put_u64(&mut document, "revision", answer.revision);
    document.insert("statements".into(), answer.statements.iter().map(statement_document).collect());
    settings.output.show(&document.into(), || text(&answer.statements))
}

fn statement_document(statement: &v1::EpochStatement) -> Value {
    let subject = statement.subject.clone().unwrap_or_default();
    let mut object = Map::new();
    for (name, value) in [
        ("limit", json!(subject.limit)),
        ("user", json!(subject.user)),
        ("route", json!(subject.route)),
        ("model", json!(subject.model)),
        ("region", json!(subject.region)),
        ("unit", unit(statement.unit).into()),
        ("epoch", instant(statement.epoch_start_ms).into()),
    ] {
        object.insert(name.to_owned(), value);
    }
    put_u64(&mut object, "used", statement.used);
    put_u64(&mut object, "held", statement.held);
    put_u64(&mut object, "generation", statement.generation);
    let columns: std::collections::BTreeMap<_, _> = statement.columns.iter().collect();
    object.insert("columns".into(), json!(columns));
    object.into()
}

fn text(statements: &[v1::EpochStatement]) -> String {
    if statements.is_empty() {
        return "no epoch with usage has ended in the time that statements are kept; `holdfast history` may know older ones\n".to_owned();
    }
    let mut rows = Rows::new(["limit", "user", "epoch", "unit", "used", "held"]);
    for statement in statements {
        let subject = statement.subject.clone().unwrap_or_default();
        let keys = [subject.route, subject.model, subject.region].into_iter().flatten().collect::<Vec<_>>();
        let limit = match keys.is_empty() {
            true => subject.limit,
            false => format!("{} [{}]", subject.limit, keys.join(" ")),
        };
        rows.add([
            limit,
            subject.user.unwrap_or_default(),
            instant(statement.epoch_start_ms),
            unit(statement.unit),
            grouped(statement.used),
            grouped(statement.held),
        ]);
    }
    rows.text()
}
