//! The history index of a real node: what it answers, and what becomes of it when its files are lost.
#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::process::ExitStatusExt;

use common::node::{Node, Site, eventually};
use common::program;
use holdfast_client::Request;
use serde_json::Value;

/// Ended reservations are forgotten after 10 seconds and the 5 that ids may lie ahead.
const PLAN: &str = "
schema: admissionBudget.v1
id_window: 10s
routes:
  - name: chat.generate
limits:
  month-tokens:
    scope: tenant
    unit: tokens
    period: { limit: 1000000, every: month }
  second-tokens:
    scope: tenant
    unit: tokens
    period: { limit: 1000000, every: 1s }
";

fn reserved(node: &Node, tenant: &str) -> String {
    let held = node.ask(&["reserve", tenant, "--amount", "tokens=7", "--route", "chat.generate"]).document();
    held["id"].as_str().unwrap().to_owned()
}

/// Reserves and settles; the id and the revision that ended it.
fn settled(node: &Node, tenant: &str) -> (String, u64) {
    let id = reserved(node, tenant);
    assert_eq!(node.ask(&["start", &id, "--operation", "op"]).code, 0);
    let settled = node.ask(&["settle", &id, "--operation", "op", "--actual", "tokens=5"]).document();
    (id, settled["ended_revision"].as_u64().unwrap())
}

/// What the index says of one reservation, once it is `wanted`.
fn history(node: &Node, args: &[&str], what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let args: Vec<&str> = ["history"].into_iter().chain(args.iter().copied()).collect();
    eventually(what, || {
        let answer = node.ask(&args);
        match answer.code {
            0 => Some(answer.document()).filter(|document| wanted(document)).ok_or(answer.stdout),
            _ => Err(answer.stderr),
        }
    })
}

fn ids(document: &Value) -> Vec<&str> {
    let entries = document["entries"].as_array().unwrap().iter();
    entries.filter_map(|entry| entry["reservation"]["id"].as_str()).collect()
}

fn statements(document: &Value) -> Vec<&Value> {
    let entries = document["entries"].as_array().unwrap().iter();
    entries.filter(|entry| entry["kind"] == "STATEMENT").collect()
}

fn from(document: &Value) -> u64 {
    document["complete_from_revision"].as_u64().unwrap()
}

/// Commands enough for a snapshot, at once.
fn crowd(node: &Node) {
    node.with_client(async |client| {
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..60 {
            let client = client.clone();
            calls.spawn(async move {
                let request = Request::new("crowd", "chat.generate").tokens(1);
                client.reserve(request).await.unwrap().release().await.unwrap();
            });
        }
        calls.join_all().await;
    });
}

fn has_snapshot(site: &Site) -> bool {
    let names = std::fs::read_dir(site.data.join("snapshots"));
    names.is_ok_and(|mut names| {
        names.any(|name| name.unwrap().path().extension().is_some_and(|end| end == "snap"))
    })
}

fn ended_at(id: &str) -> impl Fn(&Value) -> bool {
    move |document| ids(document) == [id]
}

#[test]
fn a_lost_index_is_rebuilt_from_what_the_book_remembers_and_says_from_where() {
    let folder = tempfile::tempdir().unwrap();
    let site =
        Site::new(folder.path(), "snapshot = { log_bytes = 65536, commands = 100, entries_kept = 0 }\n");
    let mut node = site.start(&["--bootstrap"]);
    node.publish(folder.path(), PLAN);
    let (acme, ended) = settled(&node, "acme");
    let (beta, _) = settled(&node, "beta");
    let found = history(&node, &[&acme], "the settlement is in the index", ended_at(&acme));
    assert_eq!((from(&found), &found["statements_from_revision"]), (1, &1.into()));
    let receipt = found["entries"][0].clone();
    history(&node, &["--tenant", "beta"], "the tenant's is in the index", ended_at(&beta));
    crowd(&node);
    eventually("a snapshot is taken", || has_snapshot(&site).then_some(()).ok_or("none".to_owned()));

    // The snapshot covers the settlements: after a restart the log tells of them no more, only the book does.
    let db = site.data.join("history").join("db");
    for harm in ["removed", "damaged"] {
        node.kill();
        match harm {
            "removed" => std::fs::remove_dir_all(&db).unwrap(),
            _ => std::fs::write(db.join("db"), vec![0xa5; 8_192]).unwrap(),
        }
        node = site.start(&[]);
        let found = history(&node, &[&acme], harm, ended_at(&acme));
        assert_eq!(found["entries"][0], receipt, "{harm}");
        let found = history(&node, &["--tenant", "beta"], harm, |found| from(found) > 0);
        assert_eq!(ids(&found), [beta.as_str()], "{harm}");
        assert!(from(&found) <= ended, "{harm}: complete from {}, ended {ended}", from(&found));
        assert!(
            found["statements_from_revision"].as_u64().unwrap() > ended,
            "{harm}: a book tells no statements"
        );
    }

    // Forgotten by the book, it is found in the index, until that is lost; then the index says so.
    eventually("the book forgets", || match node.ask(&["get", &acme]).code {
        1 => Ok(()),
        code => Err(format!("get ends with {code}")),
    });
    let found = history(&node, &[&acme], "what was forgotten is in the index", ended_at(&acme));
    assert!(from(&found) <= ended);
    // With it the account of its second was archived; that of the month goes on.
    let found = history(&node, &["--tenant", "acme"], "the statement is in the index", |found| {
        !statements(found).is_empty()
    });
    let [statement] = &statements(&found)[..] else { panic!("more than one: {found}") };
    assert_eq!((&statement["limit"], &statement["columns"]["spent"]), (&"second-tokens".into(), &"5".into()));
    let kept = node.ask(&["statements", "acme"]).document();
    assert_eq!(kept["statements"][0]["epoch"], statement["epoch"], "the book keeps it as well");
    crowd(&node);
    node.kill();
    std::fs::remove_dir_all(&db).unwrap();
    node = site.start(&[]);
    let found = history(&node, &[&acme], "it is begun anew", |found| from(found) > 0);
    assert!(ids(&found).is_empty() && from(&found) > ended, "{found}");
    let (status, said) = node.stop();
    assert!(status.success(), "{said}");
}

/// Only debug builds can be asked to panic.
#[test]
#[cfg(debug_assertions)]
fn an_abort_inside_sled_costs_the_index_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path(), "");
    let mut command = program();
    command.args(site.args(&["--bootstrap"])).env("HOLDFAST_TEST_SLED_PANICS_AT_TENANT", "poison");
    let node = Node::start(command);
    node.publish(folder.path(), PLAN);
    let (acme, ended) = settled(&node, "acme");
    history(&node, &[&acme], "the settlement is in the index", ended_at(&acme));
    let held = reserved(&node, "acme");
    let poison = reserved(&node, "poison");
    // The process may end before it answers.
    node.ask(&["release", &poison, "--deadline", "2s"]);
    let (status, said) = node.wait();
    assert_eq!(status.signal(), Some(6), "a panic aborts: {said}");
    assert!(site.data.join("history").join("suspect").exists(), "{said}");

    let node = site.start(&[]);
    for id in [&poison, &acme] {
        let found = history(&node, &[id], "the index is rebuilt", ended_at(id));
        assert_eq!(from(&found), 1, "the log still has everything");
    }
    assert!(!site.data.join("history").join("suspect").exists());
    assert_eq!(node.ask(&["get", &acme]).document()["ended_revision"], ended);
    assert_eq!(node.ask(&["get", &held]).document()["state"], "RESERVED", "nothing acknowledged is lost");
    let (status, said) = node.stop();
    assert!(status.success() && said.contains("the history index is dropped and begun anew"), "{said}");
}
