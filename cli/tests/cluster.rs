//! The commands against a real cluster: JSON and exit codes.
#![allow(clippy::unwrap_used)]

mod common;

use common::Dev;
use serde_json::Value;

const ROUTE: [&str; 2] = ["--route", "chat.generate"];

/// One limit and no rate, so that no test depends on how fast it runs.
const MONTH_OF_1000: &str = "
schema: admissionBudget.v1
routes:
  - name: chat.generate
limits:
  month-tokens:
    scope: tenant
    unit: tokens
    period: { limit: 1000, every: month }
";

fn reserve(dev: &Dev, args: &[&str]) -> common::Answer {
    reserve_at(dev, 1, args)
}

fn line<'a>(quota: &'a Value, limit: &str) -> &'a Value {
    quota["limits"].as_array().unwrap().iter().find(|line| line["id"] == limit).unwrap()
}

#[test]
fn the_life_of_a_reservation() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(&folder.path().join("data"));

    let held = reserve(&dev, &["acme", "--user", "ada", "--amount", "tokens=1200"]).document();
    let id = held["id"].as_str().unwrap();
    assert_eq!((&held["state"], &held["tier"]), (&"RESERVED".into(), &"NORMAL".into()));
    assert_eq!(held["reserved"]["tokens"], 1200);
    let again = reserve(&dev, &["acme", "--user", "ada", "--amount", "tokens=1200", "--id", id]).document();
    assert_eq!(again["reserved_revision"], held["reserved_revision"], "the same receipt");
    let other = reserve(&dev, &["acme", "--user", "ada", "--amount", "tokens=1201", "--id", id]);
    assert_eq!(other.code, 3, "the same id for something else: {}", other.stderr);
    assert!(other.stderr.contains("CONFLICT") && other.stdout.is_empty());

    let early = dev.ask(&["settle", id, "--operation", "op-1", "--actual", "tokens=800"]);
    assert_eq!(early.code, 3);
    assert!(early.stderr.contains("WRONG_STATE"), "{}", early.stderr);
    assert_eq!(dev.ask(&["start", id, "--operation", "op-1"]).document()["state"], "STARTED");
    assert_eq!(dev.ask(&["start", id, "--operation", "op-2"]).code, 3);
    assert_eq!(dev.ask(&["release", id]).code, 3, "a started one cannot be released");
    let settled = dev.ask(&["settle", id, "--operation", "op-1", "--actual", "tokens=800"]).document();
    assert_eq!((&settled["state"], &settled["actual"]["tokens"]), (&"SETTLED".into(), &800.into()));
    assert_eq!(dev.ask(&["settle", id, "--operation", "op-1", "--actual", "tokens=801"]).code, 3);
    assert_eq!(dev.ask(&["get", id]).document()["state"], "SETTLED");

    let quota = dev.ask(&["quota", "acme", "--user", "ada"]).document();
    let tokens = line(&quota, "tenant-tokens-month");
    assert_eq!((&tokens["used"], &tokens["held"]), (&800.into(), &0.into()));
    assert_eq!(tokens["remaining"], 50_000_000 - 800);
    assert_eq!(line(&quota, "user-requests-day")["used"], 1);

    let history = dev.ask(&["history", id]).document();
    let entries = history["entries"].as_array().unwrap();
    assert!(entries.iter().all(|entry| entry["reservation"]["id"] == id), "{history}");

    let given_up = reserve(&dev, &["acme", "--amount", "tokens=5"]).document();
    let id = given_up["id"].as_str().unwrap();
    assert_eq!(dev.ask(&["release", id]).document()["state"], "RELEASED");
    let never = holdfast_ledger::ReservationId::from_parts(now_ms(), 7).to_string();
    assert_eq!(dev.ask(&["get", &never]).code, 1);
    assert_eq!(dev.ask(&["release", &never]).document()["tombstone"], true);
    let late = reserve(&dev, &["acme", "--amount", "tokens=5", "--id", &never]);
    assert_eq!(late.code, 3, "a tombstone stands: {}", late.stderr);
}

#[test]
fn less_than_asked_estimates_unknowns_and_freezes() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.yaml");
    std::fs::write(&plan, MONTH_OF_1000).unwrap();
    let dev = Dev::start_with(&folder.path().join("data"), &["--plan", &plan.display().to_string()]);
    let args = ["acme", "--amount", "tokens=5000", "--min", "tokens=10", "--key", "order-7"];
    let granted = reserve(&dev, &args).document();
    assert_eq!((&granted["reserved"]["tokens"], &granted["asked"]["tokens"]), (&1000.into(), &5000.into()));
    assert_eq!(granted["idempotency_key"], "order-7");
    let again = reserve(&dev, &args).document();
    assert_eq!(again["id"], granted["id"], "the first one answers for its key");
    let id = granted["id"].as_str().unwrap();
    dev.ask(&["start", id, "--operation", "op"]).document();
    let guessed = dev.ask(&["settle", id, "--operation", "op", "--estimated"]).document();
    assert_eq!((&guessed["estimated"], &guessed["actual"]["tokens"]), (&true.into(), &1000.into()));
    let corrected = dev.ask(&["correct", id, "--operation", "op", "--actual", "tokens=400"]).document();
    assert_eq!(corrected["correction"]["actual"]["tokens"], 400);
    assert_eq!(dev.ask(&["correct", id, "--operation", "op", "--actual", "tokens=401"]).code, 3);
    // The index follows the book, a little behind.
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let history = dev.ask(&["history", id]).document();
        let last = history["entries"].as_array().unwrap().last().cloned().unwrap_or_default();
        if last["reservation"]["correction"]["actual"]["tokens"] == 400 {
            break;
        }
        assert!(std::time::Instant::now() < patience, "the correction never came: {history}");
    }

    assert_eq!(dev.ask(&["unknown", "list"]).document()["unknown"].as_array().unwrap().len(), 0);
    let never = holdfast_ledger::ReservationId::from_parts(now_ms(), 8).to_string();
    let nothing = dev.ask(&["unknown", "resolve", &never, "--actual", "tokens=1", "--reason", "asked"]);
    assert_eq!(nothing.code, 1, "{}", nothing.stderr);

    let freeze = ["--tenant", "acme", "--reason", "abuse"];
    let route = |what: &str| dev.ask(&[&["route", what, "chat.generate"][..], &freeze[..]].concat());
    assert_eq!(route("freeze").document()["changed"], true);
    let frozen = reserve(&dev, &["acme", "--amount", "tokens=1"]);
    assert!(frozen.code == 3 && frozen.stderr.contains("frozen"), "{}", frozen.stderr);
    assert_eq!(route("unfreeze").document()["changed"], true);
    assert_eq!(reserve(&dev, &["acme", "--amount", "tokens=1"]).code, 0);
}

#[test]
fn refusals_have_their_exit_code_and_leave_stdout_empty() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(&folder.path().join("data"));
    let old = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for (args, code, word) in [
        (&["acme", "--amount", "tokens=0"][..], 2, "tokens"),
        (&["acme", "--amount", "tokens=200001"], 2, "tokens"),
        (&["bad name", "--amount", "tokens=1"], 2, "tenant"),
        (&["acme", "--amount", "tokens=1", "--id", old], 3, "ID_TOO_OLD"),
    ] {
        let answer = reserve(&dev, args);
        assert_eq!(answer.code, code, "{args:?}: {}", answer.stderr);
        assert!(answer.stderr.contains(word), "{args:?}: {}", answer.stderr);
        assert_eq!(answer.stdout, "");
    }
}

#[test]
fn the_ladder_is_climbed_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.yaml");
    std::fs::write(&plan, MONTH_OF_1000).unwrap();
    let dev = Dev::start_with(&folder.path().join("data"), &["--plan", &plan.display().to_string()]);
    for number in 1..=10 {
        let tier = match number {
            1..8 => "NORMAL",
            8..10 => "DEGRADED_LIGHT",
            _ => "DEGRADED_HEAVY",
        };
        let admitted = reserve(&dev, &["demo", "--amount", "tokens=100"]).document();
        assert_eq!(admitted["tier"], tier, "request {number}");
    }
    let answer = reserve(&dev, &["demo", "--amount", "tokens=1"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (3, ""));
    assert!(answer.stderr.contains("month-tokens") && answer.stderr.contains("held"), "{}", answer.stderr);
    let never = reserve(&dev, &["demo", "--amount", "tokens=1001"]);
    assert!(never.code == 3 && never.stderr.contains("Waiting does not help"), "{}", never.stderr);
}

#[test]
fn operators_adjust_and_events_tell() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.yaml");
    std::fs::write(&plan, MONTH_OF_1000).unwrap();
    let dev = Dev::start_with(&folder.path().join("data"), &["--plan", &plan.display().to_string()]);
    let adjust = |args: &[&str]| {
        let of_acme = ["adjust", "month-tokens", "--tenant", "acme", "--reason", "ticket 7"];
        dev.ask(&of_acme.into_iter().chain(args.iter().copied()).collect::<Vec<_>>())
    };
    let set = adjust(&["--set-used", "950"]).document();
    assert_eq!((&set["what"]["set_used"], &set["after"]["remaining"]), (&950.into(), &50.into()));
    let id = set["id"].as_str().unwrap();
    let again = adjust(&["--set-used", "950", "--id", id]).document();
    assert_eq!(again["booked_revision"], set["booked_revision"], "the same receipt");
    let other = adjust(&["--set-used", "951", "--id", id]);
    assert!(other.code == 3 && other.stderr.contains("CONFLICT"), "{}", other.stderr);
    let closed = adjust(&["--grant", "1", "--epoch", "2020-01-01T00:00:00Z"]);
    assert!(closed.code == 3 && closed.stderr.contains("EPOCH_CLOSED"), "{}", closed.stderr);
    assert_eq!(adjust(&["--boost", "500", "--for", "1h"]).document()["after"]["remaining"], 550);
    for wrong in [
        &["--grant", "1", "--take", "1"][..],
        &["--boost", "1"],
        &["--grant", "-1"],
        &[],
        &["--correct", "951"],
    ] {
        let answer = adjust(wrong);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{wrong:?}: {}", answer.stderr);
    }

    let lines = dev.ask(&["events", "--tenant", "acme"]);
    assert_eq!(lines.code, 0, "{}", lines.stderr);
    let events: Vec<Value> = lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ADJUSTED", "CROSSED", "CROSSED", "BOOSTED"]);
    assert_eq!((&events[0]["adjustment"], &events[0]["reason"]), (&id.into(), &"ticket 7".into()));
    let from = events[3]["sequence"].to_string();
    assert_eq!(dev.ask(&["events", "--from", &from]).stdout.lines().count(), 1);
}

#[test]
fn an_ended_epoch_has_its_statement() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.yaml");
    std::fs::write(&plan, MONTH_OF_1000.replace("every: month", "every: 1s")).unwrap();
    let dev = Dev::start_with(&folder.path().join("data"), &["--plan", &plan.display().to_string()]);
    let held = reserve(&dev, &["acme", "--amount", "tokens=600"]).document();
    let statements = dev.until("the second is over", &["statements", "acme"], |found| {
        found["statements"].as_array().is_some_and(|found| !found.is_empty())
    });
    let statement = &statements["statements"][0];
    assert_eq!((&statement["limit"], &statement["unit"]), (&"month-tokens".into(), &"tokens".into()));
    assert_eq!((&statement["used"], &statement["held"]), (&0.into(), &600.into()));
    assert_eq!(
        statement["columns"],
        serde_json::json!({"granted": "1000", "reserved": "600", "forfeited": "400"})
    );
    let id = held["id"].as_str().unwrap();
    assert_eq!(dev.ask(&["start", id, "--operation", "op-1"]).code, 0);
    assert_eq!(dev.ask(&["settle", id, "--operation", "op-1", "--actual", "tokens=500"]).code, 0);
    let epoch = statement["epoch"].as_str().unwrap();
    let ask = |args: &[&str]| {
        let of_acme = ["statements", "acme"].into_iter().chain(args.iter().copied());
        let found = dev.ask(&of_acme.collect::<Vec<_>>()).document();
        found["statements"].as_array().unwrap().clone()
    };
    let settled = &ask(&["--epoch", epoch])[0];
    assert_eq!((&settled["used"], &settled["held"]), (&500.into(), &0.into()), "in its own epoch");
    assert_eq!(ask(&["--limit", "other"]), Vec::<Value>::new());
    assert_eq!(ask(&["--epoch", "2020-01-01T00:00:00Z"]), Vec::<Value>::new());
    let table = dev.ask_text(&["statements", "acme"]);
    assert!(table.contains("month-tokens") && table.contains(epoch), "{table}");
}

#[test]
fn plans_and_tenants_by_generation() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(&folder.path().join("data"));
    let sample = format!("{}/../scripts/plans/three-level.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&sample).unwrap();

    let in_force = dev.ask(&["plan", "get"]).document();
    assert_eq!(in_force["document"], text);
    let same = dev.ask(&["plan", "apply", &sample]).document();
    assert_eq!((&same["changed"], &same["generation"]), (&false.into(), &in_force["generation"]));
    assert_eq!(dev.ask(&["plan", "diff", &sample]).document()["same"], true);

    let edited = folder.path().join("edited.yaml");
    let edited_text = text.replace(
        "bucket: { amount: 500, per: 1s, burst: 500 }",
        "bucket: { amount: 600, per: 1s, burst: 600 }",
    );
    assert_ne!(edited_text, text);
    std::fs::write(&edited, edited_text).unwrap();
    let edited = edited.display().to_string();
    let diff = dev.ask(&["plan", "diff", &edited]).document();
    assert_eq!(diff["same"], false);
    assert!(diff["changes"].to_string().contains("global-qps"), "{diff}");
    let refused = dev.ask(&["plan", "apply", &edited, "--expected-generation", "999"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("GENERATION_MISMATCH"), "{}", refused.stderr);
    let applied = dev.ask(&["plan", "apply", &edited]).document();
    assert_eq!(applied["changed"], true);
    let wrong = folder.path().join("wrong.yaml");
    std::fs::write(&wrong, text.replace("scope: global", "scope: galaxy")).unwrap();
    let refused = dev.ask(&["plan", "apply", &wrong.display().to_string()]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    assert_eq!(dev.ask(&["plan", "get"]).document()["generation"], applied["generation"], "nothing changed");

    assert_eq!(
        dev.ask(&["tenant", "set", "tiny", "--tier", "trial", "--limit", "tenant-tokens-month=100"]).code,
        0
    );
    let record = dev.ask(&["tenant", "get", "tiny"]).document();
    assert_eq!((&record["tier"], &record["limits"]["tenant-tokens-month"]), (&"trial".into(), &100.into()));
    let quota = dev.ask(&["quota", "tiny"]).document();
    assert_eq!(line(&quota, "tenant-tokens-month")["limit"], 100);
    let list = dev.ask(&["tenant", "list"]).document();
    assert!(list["tenants"].as_array().unwrap().iter().any(|entry| entry["tenant"] == "tiny"), "{list}");
    assert_eq!(dev.ask(&["tenant", "set", "tiny", "--remove"]).document()["changed"], true);
    let unknown = dev.ask(&["tenant", "set", "tiny", "--tier", "platinum"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    let unknown = dev.ask(&["tenant", "set", "tiny", "--limit", "no-such-limit=1"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
}

/// One endpoint is enough, whichever it is: a follower names the leader, and the program goes on there.
#[test]
fn a_webhook_is_set_shown_and_removed_and_its_secret_is_shown_once() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(&folder.path().join("data"));
    // Nobody listens there.
    let url = ["--url", "http://127.0.0.1:9/hooks"];
    let set = dev.ask(&[&["tenant", "webhook", "set", "acme"][..], &url].concat()).document();
    let secret = set["secret"].as_str().unwrap();
    assert!(set["changed"] == true && secret.starts_with("whsec_") && secret.len() > 40, "{set}");
    let shown = dev.ask(&["tenant", "webhook", "get", "acme"]);
    assert!(!shown.stdout.contains(secret), "{}", shown.stdout);
    let first = shown.document();
    assert_eq!((&first["tenant"], &first["url"]), (&"acme".into(), &url[1].into()));
    assert_eq!((&first["waiting"], first["cursor"].is_u64()), (&1.into(), true));

    // The same secret from a file, in both forms: nothing changes, and nothing is printed.
    let file = folder.path().join("secret");
    std::fs::write(&file, format!("{secret}\n")).unwrap();
    let file = file.display().to_string();
    let with_file = [&["tenant", "webhook", "set", "acme", "--secret-file", &file][..], &url].concat();
    let again = dev.ask(&with_file).document();
    assert_eq!((&again["changed"], again.get("secret")), (&false.into(), None));
    for (content, word) in [("short", "5 bytes"), ("whsec_!", "base64"), (&"x".repeat(65), "65 bytes")] {
        std::fs::write(&file, content).unwrap();
        let wrong = dev.ask(&with_file);
        assert_eq!(wrong.code, 2, "{content}");
        assert!(wrong.stderr.contains(word) && wrong.stdout.is_empty(), "{}", wrong.stderr);
    }
    std::fs::write(&file, "twenty-four bytes of text").unwrap();
    assert_eq!(dev.ask(&with_file).document()["changed"], true);
    let second = dev.ask(&["tenant", "webhook", "get", "acme"]).document();
    assert_ne!(second["secret_fingerprint"], first["secret_fingerprint"]);

    let list = dev.ask(&["tenant", "webhook", "list"]).document();
    assert_eq!(list["webhooks"].as_array().unwrap().len(), 1);
    assert_eq!(dev.ask(&["tenant", "webhook", "remove", "acme"]).document()["changed"], true);
    assert_eq!(dev.ask(&["tenant", "webhook", "remove", "acme"]).document()["changed"], false);
    assert_eq!(dev.ask(&["tenant", "webhook", "get", "acme"]).code, 1);
    let wrong = dev.ask(&["tenant", "webhook", "set", "acme", "--url", "https://kim:pw@acme.example"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
}

#[test]
fn every_call_works_through_any_one_member() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(&folder.path().join("data"));
    let sample = format!("{}/../scripts/plans/three-level.yaml", env!("CARGO_MANIFEST_DIR"));
    assert_eq!(dev.ask(&["tenant", "set", "tiny", "--tier", "trial"]).code, 0);
    let held = reserve(&dev, &["acme", "--user", "ada", "--amount", "tokens=1200"]).document();
    let id = held["id"].as_str().unwrap();
    let ended = reserve(&dev, &["acme", "--amount", "tokens=1"]).document();
    let ended = ended["id"].as_str().unwrap();
    assert_eq!(dev.ask(&["release", ended]).code, 0);

    // What all must answer alike, since none of it depends on the moment.
    let alike: [&[&str]; 8] = [
        &["get", id],
        &["get", ended],
        &["plan", "get"],
        &["plan", "diff", &sample],
        &["tenant", "get", "tiny"],
        &["tenant", "list"],
        &["member", "list"],
        &["quota", "nobody-yet"],
    ];
    for args in alike {
        let answers: Vec<Value> =
            (0..3).map(|node| without_times(dev.ask_at(node, args).document())).collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{args:?}: {answers:#?}");
    }
    for node in 0..3 {
        let quota = dev.ask_at(node, &["quota", "acme", "--user", "ada"]).document();
        assert_eq!(line(&quota, "tenant-tokens-month")["held"], 1200, "node {node}");
        assert_eq!(dev.ask_at(node, &["quota", "acme", "--stale"]).code, 0);
        let status = dev.ask_at(node, &["status"]).document();
        let members = status["members"].as_array().unwrap();
        assert!(members.len() == 3 && members.iter().all(|member| member["reachable"] == true), "{status}");
        assert_eq!(dev.ask_at(node, &["audit"]).document()["ok"], true);
        let history = dev.ask_at(node, &["history", ended]).document();
        assert!(history["node"].is_u64(), "{history}");

        let own = reserve_at(&dev, node, &["acme", "--amount", "tokens=5"]).document();
        let own = own["id"].as_str().unwrap();
        let operation = format!("op-{node}");
        let steps: [&[&str]; 4] = [
            &["start", own, "--operation", &operation],
            &["settle", own, "--operation", &operation, "--actual", "tokens=4"],
            &["plan", "apply", &sample],
            &["tenant", "set", "tiny", "--tier", "trial"],
        ];
        for args in steps {
            let answer = dev.ask_at(node, args);
            assert_eq!(answer.code, 0, "node {node}: {args:?}: {}", answer.stderr);
        }
    }
}

fn reserve_at(dev: &Dev, node: usize, args: &[&str]) -> common::Answer {
    let all: Vec<&str> = ["reserve"].into_iter().chain(args.iter().copied()).chain(ROUTE).collect();
    dev.ask_at(node, &all)
}

/// Without the fields that say when or after how many commands it was answered.
fn without_times(mut document: Value) -> Value {
    if let Some(fields) = document.as_object_mut() {
        fields
            .retain(|name, _| !matches!(name.as_str(), "revision" | "at" | "at_ms" | "clock_ms" | "limits"));
    }
    document
}

#[test]
fn plans_are_forced_rolled_out_and_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let first = file("first.yaml", MONTH_OF_1000);
    let dev = Dev::start_with(&folder.path().join("data"), &["--plan", &first]);
    let held = reserve(&dev, &["demo", "--amount", "tokens=400"]).document();
    assert_eq!((&held["lane"], &held["shadow"]), (&"enforced".into(), &Value::Null));

    let renamed = file("renamed.yaml", &MONTH_OF_1000.replace("month-tokens", "tokens-of-a-month"));
    let diff = dev.ask(&["plan", "diff", &renamed]).document();
    let lost = &diff["destructive"][0];
    assert_eq!(
        (&lost["limit"], &lost["reservations"], &lost["held"]),
        (&"month-tokens".into(), &1.into(), &400.into())
    );
    let refused = dev.ask(&["plan", "apply", &renamed]);
    assert_eq!((refused.code, refused.stdout.as_str()), (3, ""), "{}", refused.stderr);
    assert!(refused.stderr.contains("1 open reservation holds 400 tokens"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(dev.ask(&["plan", "apply", &renamed, "--force"]).document()["changed"], true);
    let unit = file("unit.yaml", &MONTH_OF_1000.replace("unit: tokens", "unit: requests"));
    let refused = dev.ask(&["plan", "apply", &unit, "--force"]);
    assert!(refused.code == 3 && refused.stderr.contains("new limit id"), "{}", refused.stderr);

    let back = dev.ask(&["plan", "rollback"]).document();
    assert_eq!(back["changed"], true);
    assert_eq!(dev.ask(&["plan", "get"]).document()["document"], MONTH_OF_1000);
    let list = dev.ask(&["plan", "list"]).document();
    assert_eq!(list["plans"][0]["restored"], list["plans"][2]["generation"], "{list}");
    let status = dev.ask(&["plan", "status"]).document();
    assert_eq!(status["rollbacks"][0]["drained"], true, "nothing was admitted in between: {status}");

    let text = MONTH_OF_1000.replace("- name: chat.generate", "- name: chat.generate\n    rollout: shadow");
    let shadow = file("shadow.yaml", &text);
    assert_eq!(dev.ask(&["plan", "apply", &shadow]).document()["changed"], true);
    let admitted = reserve(&dev, &["demo", "--amount", "tokens=1001"]).document();
    assert_eq!((&admitted["lane"], &admitted["tier"]), (&"shadow".into(), &"NORMAL".into()));
    let decision = &admitted["shadow"];
    assert_eq!((&decision["decision"], &decision["reason"]), (&"rejected".into(), &"never fits".into()));
    assert_eq!(reserve(&dev, &["demo", "--amount", "tokens=900"]).code, 0);
    let quota = dev.ask(&["quota", "demo", "--shadow"]).document();
    let tokens = line(&quota, "month-tokens");
    assert_eq!((&tokens["lane"], &tokens["held"]), (&"shadow".into(), &900.into()));
    assert_eq!(line(&dev.ask(&["quota", "demo"]).document(), "month-tokens")["held"], 400);
    let status = dev.ask(&["plan", "status"]).document();
    assert_eq!(status["rollouts"][0]["rejected"]["month-tokens"], 1, "{status}");
}

#[test]
fn members_die_are_reported_and_the_data_stays() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut dev = Dev::start(&data);
    let list = dev.ask(&["member", "list"]).document();
    assert_eq!(list["members"].as_array().unwrap().len(), 3);
    let status = dev.ask(&["status"]).document();
    let members = status["members"].as_array().unwrap();
    assert_eq!(members.iter().filter(|member| member["role"] == "leader").count(), 1, "{status}");
    assert!(members.iter().all(|member| member["reachable"] == true && member["term"].is_u64()), "{status}");
    let audit = dev.ask(&["audit"]).document();
    assert_eq!((&audit["ok"], audit["nodes"].as_array().unwrap().len()), (&true.into(), 3));
    let held = reserve(&dev, &["acme", "--amount", "tokens=1200"]).document();

    dev.kill_node(0);
    let mut said = dev.next_line();
    while !said.contains("node 1") {
        said = dev.next_line();
    }
    assert!(said.contains("signal: 9"), "{said}");
    let status = dev.ask(&["status"]).document();
    let dead = status["members"].as_array().unwrap().iter().find(|member| member["id"] == 1).unwrap();
    assert_eq!(dead["reachable"], false);
    let audit = dev.ask(&["audit"]);
    assert_eq!(audit.code, 1, "a member that does not answer is not clean");
    assert_eq!(serde_json::from_str::<Value>(&audit.stdout).unwrap()["ok"], false);
    assert_eq!(dev.ask(&["get", held["id"].as_str().unwrap()]).document()["state"], "RESERVED");
    assert_eq!(dev.stop(), Some(0));

    let dev = Dev::start(&data);
    let found = dev.ask_at(0, &["get", held["id"].as_str().unwrap()]).document();
    assert_eq!(found["request_digest"], held["request_digest"]);
    let history = dev.ask(&["history", "--tenant", "acme"]).document();
    assert!(history["complete_from_revision"].is_u64(), "{history}");
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_millis() as u64
}
