//! `holdfast member`: the membership.

use holdfast_proto::v1;
use serde_json::json;

use crate::calls;
use crate::failure::Outcome;
use crate::output::Rows;
use crate::settings::Settings;
use crate::show::bytes_hex;

/// What can be done with members.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show the members as the asked one knows them; needs no leader
    List,
}

/// Does it.
pub async fn run(settings: &Settings, command: Command) -> Outcome {
    match command {
        Command::List => list(settings).await,
    }
}

async fn list(settings: &Settings) -> Outcome {
    let client = calls::client(settings)?;
    let answer = client.members().await.map_err(|error| calls::failure("members", error))?;
    let leader = answer.leader.as_ref().map(|leader| leader.node_id);
    let members: Vec<_> = answer.members.iter().map(|member| member_document(member, leader)).collect();
    let document = json!({
        "cluster_id": answer.cluster_id,
        "term": answer.term,
        "leader": leader,
        "members": members,
    });
    settings.output.show(&document, || {
        let mut rows = Rows::new(["id", "client", "peer", "http", "kind", "leads"]);
        for member in &answer.members {
            rows.add([
                member.id.to_string(),
                member.client_address.clone(),
                member.peer_address.clone(),
                member.http_address.clone(),
                if member.voter { "voter" } else { "learner" }.to_owned(),
                if leader == Some(member.id) { "yes" } else { "" }.to_owned(),
            ]);
        }
        rows.text()
    })
}

fn member_document(member: &v1::Member, leader: Option<u64>) -> serde_json::Value {
    json!({
        "id": member.id,
        "client": member.client_address,
        "peer": member.peer_address,
        "http": member.http_address,
        "disk_id": bytes_hex(&member.disk_id),
        "voter": member.voter,
        "leader": leader == Some(member.id),
    })
}
