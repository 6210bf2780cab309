//! Founding, proposing, reading, handing over.

use std::time::Duration;

use holdfast_node::propose::ProposeError;
use holdfast_node::raft::{ReadError, StartError, StartMode};

use crate::harness::{SOON, converged, founded, mark, put, put_acked, run, settled, soon, three};

#[test]
fn three_nodes_found_a_cluster_and_agree() {
    run(1, async {
        let (sim, _, leader) = founded(1).await;
        let first = put(&sim, leader, 1).await.unwrap();
        let second = put(&sim, leader, 2).await.unwrap();
        assert_eq!((first.first_revision, second.first_revision), (1, 2));
        assert!(second.index > first.index && second.clock_ms >= first.clock_ms);
        assert_eq!(converged(&sim).await, 2);
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let once = |seed| {
        run(seed, async move {
            let (sim, _, leader) = founded(seed).await;
            let answered = put(&sim, leader, 1).await.unwrap();
            (leader, answered.index, answered.clock_ms)
        })
    };
    assert_eq!(once(7), once(7));
}

#[test]
fn commands_of_one_proposal_have_consecutive_revisions_in_one_entry() {
    run(2, async {
        let (sim, _, leader) = founded(2).await;
        let commands: Vec<_> = (0..1024).map(mark).collect();
        let node = sim.node(leader).unwrap();
        let answered = node.propose(&commands, soon(SOON)).await.unwrap();
        assert_eq!((answered.first_revision, answered.answers.len()), (1, 1024));
        let too_many: Vec<_> = (0..1025).map(mark).collect();
        let refused = node.propose(&too_many, soon(SOON)).await.unwrap_err();
        assert!(matches!(refused, ProposeError::Invalid { .. }));
        assert_eq!(converged(&sim).await, 1024);
    });
}

#[test]
fn waiting_commands_share_entries() {
    run(3, async {
        let (sim, _, leader) = founded(3).await;
        let node = sim.node(leader).unwrap();
        let before = node.status().applied_index.unwrap_or(0);
        let all = (0..500u64).map(|n| async move {
            let commands = [mark(n)];
            node.propose(&commands, soon(SOON)).await.unwrap().first_revision
        });
        let mut revisions = futures_util::future::join_all(all).await;
        revisions.sort_unstable();
        assert_eq!(revisions, (1..=500).collect::<Vec<_>>());
        let entries = node.status().applied_index.unwrap_or(0) - before;
        assert!(entries <= 20, "{entries} entries for 500 commands that waited together");
    });
}

#[test]
fn a_follower_says_who_leads_and_nothing_has_happened() {
    run(4, async {
        let (sim, _, leader) = founded(4).await;
        let follower = sim.nodes().map(|(id, _)| id).find(|id| *id != leader).unwrap();
        match put(&sim, follower, 1).await {
            Err(ProposeError::NotLeader(Some(at))) => {
                assert_eq!((at.node_id, at.client_address), (leader, format!("client-{leader}:1")))
            }
            other => panic!("{other:?}"),
        }
        let read = sim.node(follower).unwrap().read_barrier(soon(SOON)).await;
        assert!(matches!(read, Err(ReadError::NotLeader(Some(at))) if at.node_id == leader));
        assert_eq!(converged(&sim).await, 0);
    });
}

#[test]
fn a_read_sees_everything_acknowledged_before_it() {
    run(5, async {
        let (sim, _, leader) = founded(5).await;
        for n in 1..=20 {
            let answered = put(&sim, leader, n).await.unwrap();
            let seen = sim.node(leader).unwrap().read(soon(SOON), |book| book.revision()).await.unwrap();
            assert!(seen >= answered.first_revision);
        }
    });
}

#[test]
fn a_deadline_that_has_passed_is_late_without_effect() {
    run(6, async {
        let (sim, _, leader) = founded(6).await;
        let refused = sim.node(leader).unwrap().propose(&[mark(1)], soon(Duration::ZERO)).await.unwrap_err();
        assert_eq!(refused, ProposeError::Late);
        put_acked(&sim, 2).await;
        assert_eq!(converged(&sim).await, 1);
    });
}

#[test]
fn leadership_is_handed_over_on_request_and_by_a_stop() {
    run(7, async {
        let (mut sim, _, leader) = founded(7).await;
        let to = sim.nodes().map(|(id, _)| id).find(|id| *id != leader).unwrap();
        assert_eq!(sim.node(leader).unwrap().transfer_leader(Some(to)).await, Some(to));
        sim.wait_for("the chosen one leads", SOON, |sim| sim.leader() == Some(to)).await.unwrap();
        put_acked(&sim, 1).await;
        sim.stop(to).await;
        let next = settled(&sim).await;
        assert_ne!(next, to);
        put_acked(&sim, 2).await;
        assert_eq!(converged(&sim).await, 2);
    });
}

#[test]
fn an_empty_directory_never_starts_by_itself() {
    run(8, async {
        let (mut sim, _) = three(8);
        let refused = sim.start(1, StartMode::Normal).await.err().unwrap();
        assert!(matches!(refused, StartError::Identity(_)), "{refused}");
        assert!(refused.to_string().contains("--bootstrap"), "{refused}");
        let mut parts = sim.parts(1, sim.bootstrap());
        parts.node_id = 9;
        let refused = sim.start_with(1, parts).await.err().unwrap();
        assert!(matches!(refused, StartError::NotAFounder(9)), "{refused}");
    });
}

#[test]
fn a_new_member_joins_catches_up_and_votes() {
    run(9, async {
        let (mut sim, _, leader) = founded(9).await;
        for n in 1..=50 {
            put_acked(&sim, n).await;
        }
        sim.add_seat(4);
        sim.start(4, StartMode::Join(vec!["peer-1:1".into()])).await.unwrap();
        let admin = sim.network().way_out_of(leader).unwrap();
        sim.node(leader).unwrap().add_member(admin.as_ref(), 4, "peer-4:1").await.unwrap();
        assert_eq!(converged(&sim).await, 50);
        sim.node(leader).unwrap().promote_member(4).await.unwrap();
        let voters = |sim: &crate::harness::Sim| {
            sim.node(leader).unwrap().status().members.iter().filter(|m| m.is_voter).count()
        };
        sim.wait_for("four voters", SOON, |sim| voters(sim) == 4).await.unwrap();
    });
}
