//! `holdfast audit`: the account equation, checked by every member over its own book.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_client::Client;
use holdfast_proto::v1;
use serde_json::{Map, Value, json};

use crate::calls;
use crate::failure::{Failure, Outcome};
use crate::output::{Rows, grouped, put_u64};
use crate::settings::Settings;
use crate::show::{bytes_hex, instant, unit};

/// Options of `audit`.
#[derive(Debug, clap::Args)]
pub struct Args {}

struct Audited {
    node_id: u64,
    client: String,
    answer: Result<v1::AuditResponse, Failure>,
}

/// Asks every member; fails if one finds a violation, does not answer, or holds another book at the same revision.
pub async fn run(settings: &Settings) -> Outcome {
    let client = calls::client(settings)?;
    let list = client.members().await.map_err(|error| calls::failure("members", error))?;
    let deadline = settings.deadline;
    let tasks: Vec<_> = list
        .members
        .into_iter()
        .map(|member| {
            let client = client.clone();
            tokio::spawn(async move {
                let answer = ask(&client, &member, deadline).await;
                Audited { node_id: member.id, client: member.client_address, answer }
            })
        })
        .collect();
    let mut audited = Vec::new();
    for task in tasks {
        audited.push(task.await.map_err(|e| Failure::failed(format!("audit: {e}")))?);
    }
    let problems = problems(&audited);
    let document = json!({
        "ok": problems.is_empty(),
        "nodes": audited.iter().map(node_document).collect::<Vec<_>>(),
        "problems": problems,
    });
    settings.output.show(&document, || text(&audited))?;
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("the audit is not clean:\n  {}", problems.join("\n  "))))
}

/// Each member's own book is meant, so that replicas that differ show.
async fn ask(client: &Client, member: &v1::Member, deadline: Duration) -> Outcome<v1::AuditResponse> {
    let pinned = calls::at_member(client, &member.client_address, deadline);
    pinned.audit().await.map_err(|error| calls::failure(&format!("audit of node {}", member.id), error))
}

/// Everything that is not as it must be.
fn problems(audited: &[Audited]) -> Vec<String> {
    let mut problems = Vec::new();
    if audited.is_empty() {
        problems.push("no member was audited: the one that was asked knows of no cluster".to_owned());
    }
    let mut digests: BTreeMap<u64, (u64, &[u8])> = BTreeMap::new();
    for one in audited {
        match &one.answer {
            Err(failure) => problems.push(failure.problem.clone()),
            Ok(answer) => {
                for violation in &answer.violations {
                    problems
                        .push(format!("node {}: {} {}", one.node_id, violation.invariant, violation.text));
                }
                if !answer.ok && answer.violations.is_empty() {
                    problems
                        .push(format!("node {}: not ok, for a reason that it does not name", one.node_id));
                }
                let (first, digest) =
                    *digests.entry(answer.revision).or_insert((one.node_id, &answer.digest[..]));
                if digest != &answer.digest[..] {
                    let revision = answer.revision;
                    problems.push(format!(
                        "nodes {first} and {} hold different books at revision {revision}",
                        one.node_id
                    ));
                }
            }
        }
    }
    problems
}

fn node_document(one: &Audited) -> Value {
    let mut object = Map::new();
    object.insert("node".into(), one.node_id.into());
    object.insert("client".into(), one.client.clone().into());
    match &one.answer {
        Err(failure) => {
            object.insert("ok".into(), false.into());
            object.insert("problem".into(), failure.problem.clone().into());
        }
        Ok(answer) => {
            object.insert("ok".into(), answer.ok.into());
            object.insert("digest".into(), bytes_hex(&answer.digest).into());
            for (name, value) in [
                ("revision", answer.revision),
                ("clock_ms", answer.clock_ms),
                ("generation", answer.generation),
                ("accounts", answer.accounts),
                ("reservations_open", answer.reservations_open),
            ] {
                put_u64(&mut object, name, value);
            }
            object.insert("sums".into(), sums_document(&answer.sums));
            let violations =
                answer.violations.iter().map(|v| json!({"invariant": v.invariant, "text": v.text}));
            object.insert("violations".into(), violations.collect());
        }
    }
    object.into()
}

/// By unit, then column. A sum that does not fit 64 bits exists as text only, under its name + `_str`.
fn sums_document(sums: &[v1::ColumnSum]) -> Value {
    let mut units: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for sum in sums {
        let columns = units.entry(unit(sum.unit)).or_default();
        match sum.sum.parse() {
            Ok(small) => put_u64(columns, &sum.column, small),
            Err(_) => drop(columns.insert(format!("{}_str", sum.column), sum.sum.clone().into())),
        }
    }
    json!(units)
}

fn text(audited: &[Audited]) -> String {
    let mut rows = Rows::new(["node", "verdict", "revision", "digest", "accounts", "open", "book time"]);
    for one in audited {
        match &one.answer {
            Ok(answer) => rows.add([
                one.node_id.to_string(),
                if answer.ok { "clean" } else { "VIOLATED" }.to_owned(),
                grouped(answer.revision),
                bytes_hex(&answer.digest),
                grouped(answer.accounts),
                grouped(answer.reservations_open),
                instant(answer.clock_ms),
            ]),
            Err(_) => {
                let nothing = String::new;
                rows.add([
                    one.node_id.to_string(),
                    "no answer".into(),
                    nothing(),
                    nothing(),
                    nothing(),
                    nothing(),
                    nothing(),
                ]);
            }
        }
    }
    rows.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audited(node_id: u64, revision: u64, digest: &'static [u8]) -> Audited {
        let answer = v1::AuditResponse { ok: true, revision, digest: digest.into(), ..Default::default() };
        Audited { node_id, client: String::new(), answer: Ok(answer) }
    }

    #[test]
    fn different_books_at_one_revision_are_a_problem() {
        assert!(problems(&[audited(1, 5, b"a"), audited(2, 5, b"a"), audited(3, 4, b"b")]).is_empty());
        let found = problems(&[audited(1, 5, b"a"), audited(2, 5, b"b")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("nodes 1 and 2"), "{found:?}");
    }

    #[test]
    fn a_member_that_does_not_answer_is_a_problem() {
        let silent = Audited { node_id: 2, client: String::new(), answer: Err(Failure::failed("gone")) };
        assert_eq!(problems(&[audited(1, 5, b"a"), silent]), ["gone"]);
    }
}
