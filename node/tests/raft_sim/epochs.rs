//! Accounting epochs from the time zone data of the leader to the balances of the book, over restarts and days.

use std::sync::Arc;

use holdfast_ledger::command::{PublishPlan, Request, Reserve, Settle, Start};
use holdfast_ledger::ids::{ActorName, OperationId, TenantId};
use holdfast_ledger::{Amounts, Answer, Command, Plan, QuotaLine, Receipt, ReservationId, Unit};
use holdfast_node::raft::StartMode;
use holdfast_node::raft::cluster::BEGIN_MS;
use holdfast_node::storage::sim_disk::Loss;
use jiff::Timestamp;
use openraft_rt::{AsyncRuntime, Instant};
use openraft_rt_sim::SimRuntime;

use crate::harness::{Now, SOON, Sim, converged, founded, run, settled, soon};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

fn ms(text: &str) -> u64 {
    u64::try_from(text.parse::<Timestamp>().unwrap().as_millisecond()).unwrap()
}

fn shown(at_ms: u64) -> String {
    Timestamp::from_millisecond(i64::try_from(at_ms).unwrap()).unwrap().to_string()
}

fn tenant() -> TenantId {
    "acme".parse().unwrap()
}

/// Proposes at whoever leads until it is answered.
async fn ask(sim: &Sim, command: Command) -> Answer {
    let give_up = Now::now() + SOON;
    loop {
        if let Some(leader) = sim.leader()
            && let Ok(answered) =
                sim.node(leader).unwrap().propose(std::slice::from_ref(&command), soon(SOON)).await
        {
            return answered.answers.into_iter().next().unwrap();
        }
        assert!(Now::now() < give_up, "no answer within {SOON:?}");
        SimRuntime::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn receipt(sim: &Sim, command: Command) -> Arc<Receipt> {
    match ask(sim, command).await {
        Answer::Reservation(receipt) => receipt,
        other => panic!("{other:?}"),
    }
}

async fn publish(sim: &Sim, limits: &str) {
    let document = format!("schema: admissionBudget.v1\nroutes:\n  - name: chat\nlimits:\n{limits}");
    let plan = Arc::new(Plan::parse(&document).unwrap());
    let actor = ActorName::new("test").unwrap();
    let command =
        PublishPlan { expected_generation: None, force: false, document: document.into(), plan, actor };
    let answer = ask(sim, Command::PublishPlan(command)).await;
    assert!(matches!(answer, Answer::Published { changed: true, .. }), "{answer:?}");
}

fn reserve(id: ReservationId, tokens: u64, hold_ttl_ms: Option<u64>) -> Command {
    let request = Request {
        tenant: tenant(),
        user: None,
        route: "chat".parse().unwrap(),
        model: None,
        region: None,
        amounts: Amounts::NONE.with(Unit::Tokens, tokens),
        minimum: Amounts::NONE,
        hold_ttl_ms,
    };
    let request_digest = request.digest();
    Command::Reserve(Reserve { id, attempt: 1, request, request_digest, key: None })
}

/// The time of whoever leads.
fn now_ms(sim: &Sim) -> u64 {
    sim.leader().map_or(0, |leader| sim.node(leader).unwrap().now_ms())
}

/// Takes the clocks of all members to an instant (a little after it), as if nothing had happened meanwhile.
async fn pass(sim: &Sim, to_ms: u64) {
    for id in 1..=3 {
        sim.clock(id).set_offset_ms(i64::try_from(to_ms - BEGIN_MS).unwrap());
    }
    let there = |sim: &Sim| {
        let known = sim.leader().map(|leader| {
            let node = sim.node(leader).unwrap();
            node.replica()
                .read(|book| book.calendars().all(|(_, known)| known.is_some_and(|known| known > to_ms)))
        });
        now_ms(sim) >= to_ms && known == Some(true)
    };
    sim.wait_for("a leader knows the bounds of that time", std::time::Duration::from_secs(120), there)
        .await
        .unwrap();
}

fn quota(sim: &Sim) -> Vec<QuotaLine> {
    let now_ms = now_ms(sim);
    sim.node(sim.leader().unwrap()).unwrap().replica().read(|book| book.quota(&tenant(), None, now_ms))
}

/// Field case 28: a hold of 26 h, a power loss of all members, and midnight. What is settled counts in the day of the hold.
#[test]
fn a_long_hold_survives_a_restart_of_all_and_settles_in_its_own_epoch() {
    for seed in 0..4 {
        run(seed, async move {
            let (mut sim, _, _) = founded(seed).await;
            publish(&sim, "  day: { scope: tenant, unit: tokens, period: { limit: 100, every: day, zone: Asia/Tokyo } }\n").await;
            // Tokyo's day of 2 December began at 15:00Z; the hold is made 2 h before its end.
            let evening_ms = ms("2026-12-02T13:00:00Z");
            pass(&sim, evening_ms).await;
            let id = ReservationId::from_parts(now_ms(&sim), 1);
            let held = receipt(&sim, reserve(id, 90, Some(26 * HOUR_MS))).await;
            assert_eq!(held.state.as_str(), "RESERVED");
            for id in 1..=3 {
                sim.crash(id, Loss::All, seed + id).await;
            }
            for id in 1..=3 {
                sim.start(id, StartMode::Normal).await.unwrap();
            }
            settled(&sim).await;
            assert_eq!(
                (quota(&sim)[0].held, quota(&sim)[0].remaining),
                (90, Some(10)),
                "held over the restart"
            );

            // Ten hours into the next day nothing of it is held, and all of it is there.
            pass(&sim, ms("2026-12-03T01:00:00Z")).await;
            assert_eq!((quota(&sim)[0].held, quota(&sim)[0].remaining), (0, Some(100)));
            let operation: OperationId = "stream".parse().unwrap();
            receipt(&sim, Command::Start(Start { id, operation: operation.clone() })).await;
            let actual = Amounts::NONE.with(Unit::Tokens, 80);
            let settle = Command::Settle(Settle { id, operation, actual, estimated: false });
            let ended = receipt(&sim, settle.clone()).await;
            assert_eq!(ended.state.as_str(), "SETTLED");
            assert_eq!(receipt(&sim, settle).await, ended, "settled once, and the same receipt again");
            let today = &quota(&sim)[0];
            assert_eq!(
                (today.used, today.held, today.remaining),
                (0, 0, Some(100)),
                "nothing of it in this day"
            );
            converged(&sim).await;
            for (_, node) in sim.nodes() {
                let statements =
                    node.replica().read(|book| book.statements(&tenant(), None, book.clock_ms()));
                let [yesterday] = &statements[..] else { panic!("{statements:?}") };
                assert_eq!((yesterday.used, yesterday.held), (80, 0));
                assert_eq!(shown(yesterday.epoch_start_ms), "2026-12-01T15:00:00Z");
            }
        });
    }
}

/// Field case 33 and its siblings, joined: days of 23 and 25 hours, zones that are off by half hours and change by half
/// an hour, months and weeks with an anchor. Each epoch is entered a minute before its end and has exactly one reset.
#[test]
fn epochs_of_zones_and_anchors_end_when_their_calendars_say() {
    let limits = "
  amsterdam: { scope: tenant, unit: tokens, period: { limit: 10, every: day, zone: Europe/Amsterdam } }
  kolkata: { scope: tenant, unit: tokens, period: { limit: 10, every: day, zone: Asia/Kolkata } }
  howe: { scope: tenant, unit: tokens, period: { limit: 10, every: day, zone: Australia/Lord_Howe } }
  month: { scope: tenant, unit: tokens, period: { limit: 100000, every: month, starts_on: 15, zone: Asia/Kolkata } }
  week: { scope: tenant, unit: tokens, period: { limit: 100000, every: week, starts_on: wednesday, zone: Asia/Kolkata } }
  year: { scope: tenant, unit: tokens, period: { limit: 100000, every: year, starts_on: april } }
";
    // The limit, the begin and end of an epoch of it.
    let epochs = [
        ("kolkata", "2026-12-01T18:30:00Z", "2026-12-02T18:30:00Z"),
        ("month", "2026-12-14T18:30:00Z", "2027-01-14T18:30:00Z"),
        // Central Europe loses an hour on 28 March.
        ("amsterdam", "2027-03-27T23:00:00Z", "2027-03-28T22:00:00Z"),
        ("year", "2026-04-01T00:00:00Z", "2027-04-01T00:00:00Z"),
        // Lord Howe Island gains half an hour on 4 April, and loses it on 3 October.
        ("howe", "2027-04-03T13:00:00Z", "2027-04-04T13:30:00Z"),
        ("howe", "2027-10-02T13:30:00Z", "2027-10-03T13:00:00Z"),
        ("week", "2027-10-19T18:30:00Z", "2027-10-26T18:30:00Z"),
        // Central Europe gains an hour on 31 October.
        ("amsterdam", "2027-10-30T22:00:00Z", "2027-10-31T23:00:00Z"),
    ];
    run(7, async {
        let (sim, _, _) = founded(7).await;
        publish(&sim, limits).await;
        let mut number = 0;
        for (limit, begin, end) in epochs {
            let begin_ms = ms(begin).max(now_ms(&sim));
            let line = |sim: &Sim| quota(sim).into_iter().find(|line| line.limit.as_str() == limit).unwrap();
            for (at_ms, reset) in [(begin_ms, end), (ms(end) - MINUTE_MS, end)] {
                pass(&sim, at_ms).await;
                number += 1;
                let id = ReservationId::from_parts(now_ms(&sim), number);
                receipt(&sim, reserve(id, 1, None)).await;
                let line = line(&sim);
                assert_eq!(
                    line.reset_at_ms.map(shown).as_deref(),
                    Some(reset),
                    "{limit} at {}",
                    shown(at_ms)
                );
                assert_eq!(
                    line.epoch_start_ms.map(shown).as_deref(),
                    Some(begin),
                    "{limit} at {}",
                    shown(at_ms)
                );
            }
            assert!(line(&sim).held > 0);
            pass(&sim, ms(end)).await;
            let next = line(&sim);
            assert_eq!((next.used, next.held), (0, 0), "{limit} after {end}");
            assert_ne!(next.reset_at_ms.map(shown).as_deref(), Some(end), "{limit} after {end}");
        }
        converged(&sim).await;
    });
}
