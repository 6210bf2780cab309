//! `holdfast status`: every member, asked by itself.

use std::time::Duration;

use holdfast_client::Client;
use holdfast_proto::v1;
use serde_json::{Map, Value, json};

use crate::calls;
use crate::failure::{Failure, Outcome};
use crate::output::{Rows, grouped, put_u64};
use crate::settings::Settings;
use crate::show::{bytes_hex, role};

/// Options of `status`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// What one member answered for itself.
struct Seen {
    member: v1::Member,
    answer: Result<v1::MemberStatus, Failure>,
}

/// Asks every member and shows what each said.
pub async fn run(settings: &Settings) -> Outcome {
    let client = calls::client(settings)?;
    let list = client.members().await.map_err(|error| calls::failure("members", error))?;
    let deadline = settings.deadline;
    let asked = list.members.into_iter().map(|member| {
        let client = client.clone();
        tokio::spawn(async move {
            let answer = ask(&client, &member, deadline).await;
            Seen { member, answer }
        })
    });
    let mut seen = Vec::new();
    for task in asked.collect::<Vec<_>>() {
        seen.push(task.await.map_err(|e| Failure::failed(format!("status: {e}")))?);
    }
    let last = seen.iter().filter_map(|one| one.answer.as_ref().ok()).map(|status| status.last_index).max();
    let document = json!({
        "cluster_id": list.cluster_id,
        "members": seen.iter().map(|one| member_document(one, last)).collect::<Vec<_>>(),
    });
    settings.output.show(&document, || text(&seen, last))
}

async fn ask(client: &Client, member: &v1::Member, deadline: Duration) -> Outcome<v1::MemberStatus> {
    let what = format!("status of node {}", member.id);
    let pinned = calls::at_member(client, &member.client_address, deadline);
    let answer = pinned.status(true).await.map_err(|error| calls::failure(&what, error))?;
    let own =
        answer.members.into_iter().find(|status| status.member.as_ref().is_none_or(|m| m.id == member.id));
    own.ok_or_else(|| Failure::failed(format!("{what}: it said nothing of itself")))
}

/// Entries that a member lacks against the furthest that answered.
fn lag(status: &v1::MemberStatus, last: Option<u64>) -> u64 {
    last.unwrap_or(status.last_index).saturating_sub(status.applied_index)
}

fn member_document(seen: &Seen, last: Option<u64>) -> Value {
    let mut object = Map::new();
    object.insert("id".into(), seen.member.id.into());
    object.insert("client".into(), seen.member.client_address.clone().into());
    object.insert("peer".into(), seen.member.peer_address.clone().into());
    object.insert("http".into(), seen.member.http_address.clone().into());
    object.insert("voter".into(), seen.member.voter.into());
    object.insert("reachable".into(), seen.answer.is_ok().into());
    match &seen.answer {
        Err(failure) => drop(object.insert("problem".into(), failure.problem.clone().into())),
        Ok(status) => {
            object.insert("role".into(), role(status.role).into());
            object.insert("version".into(), status.version.clone().into());
            object.insert("digest".into(), bytes_hex(&status.digest).into());
            for (name, value) in [
                ("term", status.term),
                ("last_index", status.last_index),
                ("committed_index", status.committed_index),
                ("applied_index", status.applied_index),
                ("snapshot_index", status.snapshot_index),
                ("lag", lag(status, last)),
                ("revision", status.revision),
                ("generation", status.generation),
                ("clock_ms", status.clock_ms),
            ] {
                put_u64(&mut object, name, value);
            }
        }
    }
    object.into()
}

fn text(seen: &[Seen], last: Option<u64>) -> String {
    let mut rows =
        Rows::new(["id", "client", "role", "term", "last", "applied", "lag", "revision", "generation"]);
    let mut problems = String::new();
    for one in seen {
        let (id, client) = (one.member.id.to_string(), one.member.client_address.clone());
        match &one.answer {
            Ok(status) => rows.add([
                id,
                client,
                role(status.role),
                status.term.to_string(),
                grouped(status.last_index),
                grouped(status.applied_index),
                grouped(lag(status, last)),
                grouped(status.revision),
                status.generation.to_string(),
            ]),
            Err(failure) => {
                let nothing = String::new;
                rows.add([
                    id,
                    client,
                    "no answer".into(),
                    nothing(),
                    nothing(),
                    nothing(),
                    nothing(),
                    nothing(),
                    nothing(),
                ]);
                problems.push_str(&format!("\n{}", failure.problem));
            }
        }
    }
    rows.text() + &problems + if problems.is_empty() { "" } else { "\n" }
}
