//! Who may call whom, and books that differ.

use std::time::Duration;

use holdfast_ledger::Book;
use holdfast_node::raft::cluster::CLUSTER_ID;
use holdfast_node::raft::transport::PeerError;
use holdfast_node::raft::{DiskId, Identity};
use holdfast_proto::v1;

use crate::harness::{SOON, Sim, converged, founded, put, put_acked, run};

const WITHIN: Duration = Duration::from_secs(1);

fn wire(identity: &Identity) -> Option<v1::Identity> {
    let Identity { cluster_id, node_id, disk_id } = identity.clone();
    Some(v1::Identity { cluster_id, node_id, disk_id: disk_id.to_bytes().to_vec().into() })
}

/// Asks node `to` for a vote that it would refuse anyway (term 0), in somebody's name.
async fn ask(sim: &Sim, to: u64, from: &Identity, meant: &Identity, group: u64) -> Result<(), PeerError> {
    let envelope = Some(v1::Envelope { group, from: wire(from), to: wire(meant) });
    let vote = Some(v1::BallotVote { term: 0, node_id: from.node_id, committed: false });
    let request = v1::VoteRequest { envelope, vote, last_log_id: None, leadership_transfer: false };
    sim.node(to).unwrap().peer_server().vote(request, true, WITHIN).await.map(drop)
}

#[test]
fn peers_with_a_wrong_identity_are_refused_in_either_direction() {
    run(1, async {
        let (sim, _, _) = founded(1).await;
        let [one, two] = [1, 2].map(|id| sim.node(id).unwrap().identity().clone());
        assert_eq!(ask(&sim, 1, &two, &one, 0).await, Ok(()));

        let other_disk = DiskId(7);
        let cases = [
            ("another group", two.clone(), one.clone(), 1),
            (
                "a caller of another cluster",
                Identity { cluster_id: "elsewhere".into(), ..two.clone() },
                one.clone(),
                0,
            ),
            ("a caller on another disk", Identity { disk_id: other_disk, ..two.clone() }, one.clone(), 0),
            (
                "another cluster was meant",
                two.clone(),
                Identity { cluster_id: "elsewhere".into(), ..one.clone() },
                0,
            ),
            ("another node was meant", two.clone(), Identity { node_id: 3, ..one.clone() }, 0),
            ("another disk was meant", two.clone(), Identity { disk_id: other_disk, ..one.clone() }, 0),
        ];
        for (what, from, meant, group) in cases {
            let answer = ask(&sim, 1, &from, &meant, group).await;
            assert!(matches!(answer, Err(PeerError::WrongIdentity(_))), "{what}: {answer:?}");
        }
        let identify = v1::IdentifyRequest { cluster_id: "elsewhere".into(), from: wire(&two) };
        let answer = sim.node(1).unwrap().peer_server().identify(identify, WITHIN).await;
        assert!(matches!(answer, Err(PeerError::WrongIdentity(_))));
    });
}

#[test]
fn a_member_tells_who_it_is_and_whom_it_knows() {
    run(2, async {
        let (sim, _, leader) = founded(2).await;
        let identify = v1::IdentifyRequest { cluster_id: CLUSTER_ID.into(), from: None };
        let answer = sim.node(1).unwrap().peer_server().identify(identify, WITHIN).await.unwrap();
        assert_eq!(answer.members.iter().map(|m| m.id).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!((answer.voters, answer.leader), (vec![1, 2, 3], leader));
    });
}

#[test]
fn the_member_whose_book_differs_stops_itself() {
    for which in ["a follower", "the leader"] {
        run(3, async move {
            let (sim, _, leader) = founded(3).await;
            put_acked(&sim, 1).await;
            converged(&sim).await;
            let odd = if which == "the leader" { leader } else { (1..=3).find(|id| *id != leader).unwrap() };
            // As if a bit of its memory had flipped.
            sim.node(odd).unwrap().replica().restore(Book::new(), 0);
            let failed = |sim: &Sim| {
                sim.node(odd).unwrap().status().fatal.is_some_and(|why| why.contains("book differs"))
            };
            // Digests are kept at every 256th index.
            for n in 2..=300 {
                if failed(&sim) {
                    break;
                }
                // Once it has failed, an odd leader takes nothing more.
                let _ = put(&sim, leader, n).await;
            }
            sim.wait_for("the odd one fails", SOON, failed).await.unwrap();
            let others = sim.nodes().filter(|(id, node)| *id != odd && node.status().fatal.is_some()).count();
            assert_eq!(others, 0, "{which} differed, and others stopped too");
            let why = sim.node(odd).unwrap().status().fatal.unwrap();
            assert!(why.contains("log index 256") && why.contains("digest is"), "{why}");
            let counted = |id| sim.node(id).unwrap().status().counters.digest_mismatches;
            assert_eq!((counted(odd), counted(leader)), (1, 1), "{which} differed");
        });
    }
}
