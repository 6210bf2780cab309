//! `holdfast plan`: check, apply, show, compare and roll back plans.

use std::io::Read;
use std::path::{Path, PathBuf};

use holdfast_client::Client;
use holdfast_ledger::limits::PLAN_BYTES_MAX;
use holdfast_ledger::plan::{Plan, PlanError};
use holdfast_proto::v1;
use serde_json::{Map, Value, json};

use crate::calls;
use crate::failure::{Failure, Outcome};
use crate::output::{Rows, print, put_u64};
use crate::settings::Settings;
use crate::show::{instant, plan_status_document, plan_status_text, unit};

/// What can be done with plans.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Check a document without a cluster, time zones included; names every problem by its line
    Check {
        /// The document (schema admissionBudget.v1); - reads standard input
        file: PathBuf,
    },
    /// Publish a document
    Apply {
        /// The document; - reads standard input
        file: PathBuf,
        /// Refuse unless this generation is in force, or this very document already
        #[arg(long, value_name = "N")]
        expected_generation: Option<u64>,
        /// Publish even if limits are cut off that something is held on or owed to (see plan diff)
        #[arg(long)]
        force: bool,
    },
    /// Print the document in force word for word
    Get {
        /// An earlier generation's instead
        #[arg(long, value_name = "N")]
        generation: Option<u64>,
    },
    /// List the generations that are kept, newest first
    List,
    /// Put the content of an earlier generation in force again, as a new one
    ///
    /// What the generations in between admitted goes on: settlements, debts and all. `plan status` shows what is still
    /// open of it.
    Rollback {
        /// The generation to go back to; without it: the plan before the one in force
        #[arg(long, value_name = "N")]
        to: Option<u64>,
        /// Refuse unless this generation is in force
        #[arg(long, value_name = "N")]
        expected_generation: Option<u64>,
    },
    /// Show what the shadow lane decided, and how far what was rolled back has drained
    Status,
    /// Show what a document, or a generation, would change
    Diff {
        /// The document; - reads standard input
        #[arg(required_unless_present = "to")]
        file: Option<PathBuf>,
        /// Compare with this generation instead of the one in force
        #[arg(long, value_name = "N")]
        from: Option<u64>,
        /// Compare this generation instead of a file
        #[arg(long, value_name = "N", conflicts_with = "file")]
        to: Option<u64>,
    },
}

/// Does it.
pub async fn run(settings: &Settings, command: Command) -> Outcome {
    match command {
        Command::Check { file } => check(settings, &file),
        Command::Apply { file, expected_generation, force } => {
            apply(settings, &file, expected_generation, force).await
        }
        Command::Get { generation } => get(settings, generation).await,
        Command::List => list(settings).await,
        Command::Rollback { to, expected_generation } => rollback(settings, to, expected_generation).await,
        Command::Status => status(settings).await,
        Command::Diff { file, from, to } => diff(settings, file.as_deref(), from, to).await,
    }
}

fn check(settings: &Settings, file: &Path) -> Outcome {
    let document = read_document(file)?;
    let problems = problems(&document);
    let shown: Vec<_> = problems
        .iter()
        .map(|error| json!({"line": error.line, "path": error.path, "problem": error.problem}))
        .collect();
    let summary = json!({"ok": problems.is_empty(), "problems": shown});
    if problems.is_empty() {
        return settings.output.show(&summary, || format!("{}: this plan is fine\n", file.display()));
    }
    if settings.output.is_json() {
        settings.output.show(&summary, String::new)?;
    }
    Err(wrong_document(file, &problems))
}

/// Everything that is wrong with a plan document, time zones included.
pub fn problems(document: &str) -> Vec<PlanError> {
    Plan::parse_with_zones(document, &|zone| jiff::tz::TimeZone::get(zone).is_ok()).err().unwrap_or_default()
}

/// A document that cannot be used, with every problem on a line of its own.
pub fn wrong_document(file: &Path, problems: &[PlanError]) -> Failure {
    let count =
        if problems.len() == 1 { "1 problem".to_owned() } else { format!("{} problems", problems.len()) };
    let lines: Vec<String> = problems.iter().map(|error| format!("\n  {}:{error}", file.display())).collect();
    Failure::failed(format!("{} has {count}:{}", file.display(), lines.concat()))
}

/// The text of a document; `-` is standard input.
pub fn read_document(file: &Path) -> Outcome<String> {
    let cannot = |e: &dyn std::fmt::Display| Failure::usage(format!("cannot read {}: {e}", file.display()));
    let from: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(|e| cannot(&e))?)
    };
    // A byte more than is allowed tells that there are more; a device would never end.
    let mut bytes = Vec::new();
    from.take(PLAN_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|e| cannot(&e))?;
    if bytes.len() > PLAN_BYTES_MAX {
        return Err(cannot(&format!("it is longer than {PLAN_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|e| cannot(&e))
}

async fn apply(settings: &Settings, file: &Path, expected_generation: Option<u64>, force: bool) -> Outcome {
    let document = read_document(file)?;
    let problems = problems(&document);
    if !problems.is_empty() {
        return Err(wrong_document(file, &problems).advise("Nothing was published; the plan in force stays."));
    }
    let client = calls::client(settings)?;
    let answer = publish(&client, &document, expected_generation, force).await?;
    published(settings, &answer, &format!("{}", file.display()))
}

/// Publishes a document.
pub async fn publish(
    client: &Client,
    document: &str,
    expected_generation: Option<u64>,
    force: bool,
) -> Outcome<v1::PublishResponse> {
    let published = client.publish_plan(document, expected_generation, force, &actor()).await;
    published.map_err(|error| calls::failure("plan apply", error))
}

/// Shows what a publish brought.
pub fn published(settings: &Settings, answer: &v1::PublishResponse, what: &str) -> Outcome {
    let mut document = Map::new();
    put_u64(&mut document, "generation", answer.generation);
    put_u64(&mut document, "revision", answer.revision);
    document.insert("changed".into(), answer.changed.into());
    settings.output.show(&document.into(), || match answer.changed {
        true => format!("{what} is in force: generation {}\n", answer.generation),
        false => format!("{what} changes nothing: generation {} stays in force\n", answer.generation),
    })
}

/// A published plan.
pub async fn get_plan(client: &Client, generation: Option<u64>) -> Outcome<v1::GetPlanResponse> {
    client.plan(generation).await.map_err(|error| calls::failure("plan get", error))
}

async fn get(settings: &Settings, generation: Option<u64>) -> Outcome {
    let answer = get_plan(&calls::client(settings)?, generation).await?;
    if !settings.output.is_json() {
        return print(&answer.document);
    }
    let head = answer.head.unwrap_or_default();
    let mut document = Map::new();
    put_u64(&mut document, "generation", head.generation);
    put_u64(&mut document, "published_at_ms", head.published_at_ms);
    document.insert("published_at".into(), instant(head.published_at_ms).into());
    document.insert("actor".into(), head.actor.into());
    document.insert("document".into(), answer.document.into());
    settings.output.show(&document.into(), String::new)
}

async fn list(settings: &Settings) -> Outcome {
    let answer = plans(&calls::client(settings)?).await?;
    let head = |head: &v1::PlanHead| {
        let mut object = Map::new();
        put_u64(&mut object, "generation", head.generation);
        put_u64(&mut object, "published_at_ms", head.published_at_ms);
        object.insert("published_at".into(), instant(head.published_at_ms).into());
        object.insert("actor".into(), head.actor.clone().into());
        object.insert("restored".into(), head.restored.into());
        Value::from(object)
    };
    let plans: Vec<Value> = answer.plans.iter().map(head).collect();
    let document = json!({"generation": answer.generation, "plans": plans});
    settings.output.show(&document, || {
        let mut rows = Rows::new(["generation", "published", "by", "note"]);
        for head in &answer.plans {
            let note =
                head.restored.map_or_else(String::new, |restored| format!("rolled back to {restored}"));
            let published = instant(head.published_at_ms);
            rows.add([head.generation.to_string(), published, head.actor.clone(), note]);
        }
        rows.text()
    })
}

async fn plans(client: &Client) -> Outcome<v1::ListPlansResponse> {
    client.plans().await.map_err(|error| calls::failure("plan list", error))
}

async fn rollback(settings: &Settings, to: Option<u64>, expected_generation: Option<u64>) -> Outcome {
    let client = calls::client(settings)?;
    let (to, expected) = match to {
        Some(to) => (to, expected_generation),
        None => {
            let known = plans(&client).await?;
            let before = known.plans.get(1).map(|head| head.generation);
            let to = before.ok_or_else(|| Failure::failed("there is no plan before the one in force"))?;
            // What was looked up must still hold.
            (to, expected_generation.or(Some(known.generation)))
        }
    };
    let answer = client
        .roll_back_plan(to, expected, &actor())
        .await
        .map_err(|error| calls::failure("plan rollback", error))?;
    published(settings, &answer, &format!("the plan of generation {to}"))
}

async fn status(settings: &Settings) -> Outcome {
    let answer = calls::client(settings)?.plan_status().await;
    let answer = answer.map_err(|error| calls::failure("plan status", error))?;
    settings.output.show(&plan_status_document(&answer), || plan_status_text(&answer))
}

async fn diff(settings: &Settings, file: Option<&Path>, from: Option<u64>, to: Option<u64>) -> Outcome {
    use v1::plan_ref::Plan as Ref;
    let target = match (file, to) {
        (Some(file), _) => Ref::Document(read_document(file)?),
        (None, to) => Ref::Generation(to.unwrap_or_default()),
    };
    let side = |plan| v1::PlanRef { plan: Some(plan) };
    let answer = calls::client(settings)?
        .diff_plans(side(Ref::Generation(from.unwrap_or_default())), side(target))
        .await
        .map_err(|error| calls::failure("plan diff", error))?;
    let changes: Vec<_> = answer
        .changes
        .iter()
        .map(|change| json!({"path": change.path, "before": change.before, "after": change.after}))
        .collect();
    let losses: Vec<_> = answer.losses.iter().map(loss_document).collect();
    let document = json!({"same": answer.same_content, "changes": changes, "destructive": losses});
    settings.output.show(&document, || match answer.same_content {
        true => "no difference\n".to_owned(),
        false => changes_text(&answer.changes) + &losses_text(&answer.losses),
    })
}

fn loss_document(loss: &v1::LimitLoss) -> Value {
    let mut object = Map::new();
    object.insert("limit".into(), loss.limit.clone().into());
    object.insert("unit".into(), unit(loss.unit).into());
    object.insert("reservations".into(), loss.reservations.into());
    object.insert("text".into(), loss.text.clone().into());
    for (name, amount) in [("held", &loss.held), ("debt", &loss.debt)] {
        match amount.parse() {
            Ok(amount) => put_u64(&mut object, name, amount),
            // Wider than 64 bits.
            Err(_) => drop(object.insert(format!("{name}_str"), amount.clone().into())),
        }
    }
    object.into()
}

fn losses_text(losses: &[v1::LimitLoss]) -> String {
    losses.iter().map(|loss| format!("! limits.{}: {}\n", loss.limit, loss.text)).collect()
}

fn changes_text(changes: &[v1::PlanChange]) -> String {
    let mut text = String::new();
    for change in changes {
        match (&change.before, &change.after) {
            (Some(before), Some(after)) => {
                text.push_str(&format!("~ {}: {before} -> {after}\n", change.path))
            }
            (None, Some(after)) => text.push_str(&format!("+ {}: {after}\n", change.path)),
            (Some(before), None) => text.push_str(&format!("- {}: {before}\n", change.path)),
            (None, None) => text.push_str(&format!("  {}\n", change.path)),
        }
    }
    text
}

/// Who publishes, for the record: the name this user has on this machine.
pub fn actor() -> String {
    let named =
        std::env::var("USER").ok().filter(|name| name.parse::<holdfast_ledger::ids::ActorName>().is_ok());
    named.unwrap_or_else(|| "cli".to_owned())
}
