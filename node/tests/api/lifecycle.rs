//! Starting, stopping, and what keeps a node from starting.

use std::net::TcpListener;

use holdfast_node::serve::{Ports, Running, StartMode, StartOptions};
use holdfast_proto::v1;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cluster::{Cluster, apart, config, eventually};

async fn http_get(address: &str, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_find_a_leader_are_healthy_and_hand_over_when_stopped() {
    let mut cluster = Cluster::found(3, |_| {});
    let leader = cluster.leader().await;
    for config in &cluster.configs {
        let ready = http_get(&config.http.listen, "/readyz").await;
        assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
        let metrics = http_get(&config.http.listen, "/metrics").await;
        assert!(metrics.contains("\nholdfast_has_leader 1\n"), "{metrics}");
        assert!(http_get(&config.http.listen, "/").await.contains("can take calls"));
    }
    let mut health = tonic_health::pb::health_client::HealthClient::new(cluster.channel(leader));
    let request = tonic_health::pb::HealthCheckRequest { service: "holdfast.v1.Ledger".into() };
    let told = health.check(request).await.unwrap().into_inner().status;
    assert_eq!(told, tonic_health::pb::health_check_response::ServingStatus::Serving as i32);

    // Stopped in order, it hands over: the others never have to wait for an election.
    let term = term(&cluster, leader).await;
    cluster.stop(leader);
    let next = cluster.leader().await;
    assert_ne!(next, leader);
    assert!(self::term(&cluster, next).await <= term + 1);
    cluster.start(leader);
    cluster.leader().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_quorum_is_not_ready_and_says_why() {
    let mut cluster = Cluster::found(3, |_| {});
    let leader = cluster.leader().await;
    let last = (leader + 1) % 3;
    cluster.stop_all(&[leader, (leader + 2) % 3]);
    let http = cluster.configs[last].http.listen.clone();
    let unready = eventually("the last node is unready", async || {
        Some(http_get(&http, "/readyz").await).filter(|answer| answer.starts_with("HTTP/1.1 503"))
    })
    .await;
    assert!(
        ["has not been heard of", "no quorum", "no leader"].iter().any(|why| unready.contains(why)),
        "{unready}"
    );
    let metrics = http_get(&http, "/metrics").await;
    assert!(metrics.contains("\nholdfast_has_leader 0\n"), "{metrics}");
    assert!(metrics.contains("\nholdfast_is_leader 0\n"), "{metrics}");
    cluster.start(leader);
    eventually("it is ready again", async || {
        http_get(&http, "/readyz").await.starts_with("HTTP/1.1 200").then_some(())
    })
    .await;
}

async fn term(cluster: &Cluster, node: usize) -> u64 {
    let mut members = v1::members_client::MembersClient::new(cluster.channel(node));
    members.list(v1::ListMembersRequest {}).await.unwrap().into_inner().term
}

#[tokio::test(flavor = "multi_thread")]
async fn status_tells_of_every_member_and_marks_those_that_do_not_answer() {
    let mut cluster = Cluster::found(3, |_| {});
    let leader = cluster.leader().await;
    let stopped = (leader + 1) % 3;
    cluster.stop(stopped);
    let asked = (leader + 2) % 3;
    let mut members = v1::members_client::MembersClient::new(cluster.channel(asked));
    let status = members.status(v1::StatusRequest { only_this: false }).await.unwrap().into_inner();
    assert_eq!((status.cluster_id.as_str(), status.node_id), ("test", asked as u64 + 1));
    let reachable: Vec<_> = status.members.iter().map(|member| member.reachable).collect();
    let expected: Vec<_> = (0..3).map(|i| i != stopped).collect();
    assert_eq!(reachable, expected, "{status:#?}");
    for member in status.members.iter().filter(|member| member.reachable) {
        assert_eq!(member.version, env!("CARGO_PKG_VERSION"));
        assert!(member.term > 0 && member.lag.is_some(), "{member:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_goes_where_it_is_sent() {
    let cluster = Cluster::found(3, |_| {});
    let leader = cluster.leader().await;
    let to = (leader + 1) % 3;
    let mut members = v1::members_client::MembersClient::new(cluster.channel(leader));
    for wrong in [9, u64::MAX] {
        let refused = members.transfer_leader(v1::TransferLeaderRequest { to: wrong }).await.unwrap_err();
        assert!(refused.message().contains("to: "), "{refused:?}");
    }
    let moved =
        members.transfer_leader(v1::TransferLeaderRequest { to: to as u64 + 1 }).await.unwrap().into_inner();
    assert_eq!(moved.leader.unwrap().node_id, to as u64 + 1);
    let refused = members.transfer_leader(v1::TransferLeaderRequest { to: 0 }).await.unwrap_err();
    let failure = holdfast_proto::Failure::from_status(&refused).unwrap();
    assert_eq!(failure.reason, holdfast_proto::ErrorReason::NotLeader);
    assert_eq!(failure.facts.leader.unwrap().address, cluster.configs[to].client.listen);
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_tells_the_services_in_both_versions() {
    use tonic_reflection::pb::{v1 as new, v1alpha as old};
    let cluster = Cluster::found(1, |_| {});
    cluster.leader().await;
    let mut client = new::server_reflection_client::ServerReflectionClient::new(cluster.channel(0));
    let ask = new::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(new::server_reflection_request::MessageRequest::ListServices(String::new())),
    };
    let mut answers = client.server_reflection_info(tokio_stream::once(ask)).await.unwrap().into_inner();
    let answer = format!("{:?}", answers.message().await.unwrap());
    assert!(answer.contains("holdfast.v1.Ledger") && answer.contains("grpc.health.v1.Health"), "{answer}");
    let mut client = old::server_reflection_client::ServerReflectionClient::new(cluster.channel(0));
    let ask = old::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(old::server_reflection_request::MessageRequest::ListServices(String::new())),
    };
    let mut answers = client.server_reflection_info(tokio_stream::once(ask)).await.unwrap().into_inner();
    assert!(format!("{:?}", answers.message().await.unwrap()).contains("holdfast.v1.Ledger"));
}

fn refusal(config: &holdfast_node::config::NodeConfig, mode: StartMode) -> String {
    match Ports::bind(config).and_then(|ports| Running::start(config, ports, mode)) {
        Ok(_) => panic!("the node started"),
        Err(fatal) => fatal.to_string(),
    }
}

#[test]
fn a_port_in_use_stops_the_start_before_the_data_is_touched() {
    let directory = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = config(1, directory.path());
    config.client.listen = taken.local_addr().unwrap().to_string();
    let said = refusal(&config, StartMode::Bootstrap);
    assert!(said.starts_with("client.listen: cannot listen on"), "{said}");
    assert!(said.contains("in use"), "{said}");
    assert!(!config.data_dir.exists());
}

#[test]
fn a_directory_that_was_never_founded_does_not_start_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(1, directory.path());
    let said = refusal(&config, StartMode::Normal);
    assert!(said.contains("bootstrap") || said.contains("join"), "{said}");
}

#[test]
fn a_directory_in_use_damaged_or_of_another_node_or_cluster_is_named_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(1, directory.path());
    let node = Running::start(&config, Ports::bind(&config).unwrap(), StartMode::Bootstrap).unwrap();
    let said = refusal(&config, StartMode::Normal);
    assert!(said.contains("is in use by process"), "{said}");
    node.stop().unwrap();

    let mut other = config.clone();
    other.node_id = 2;
    let said = refusal(&other, StartMode::Normal);
    assert!(said.contains("node 1") && said.contains("node 2"), "{said}");
    let mut other = config.clone();
    other.cluster_id = "elsewhere".into();
    let said = refusal(&other, StartMode::Normal);
    assert!(said.contains("test") && said.contains("elsewhere"), "{said}");

    let identity = config.data_dir.join("identity");
    let bytes = std::fs::read(&identity).unwrap();
    let mut damaged = bytes.clone();
    damaged[10] ^= 0x40;
    std::fs::write(&identity, &damaged).unwrap();
    let said = refusal(&config, StartMode::Normal);
    assert!(said.contains("identity"), "{said}");
    std::fs::write(&identity, &bytes).unwrap();

    // None of that has changed anything: the node comes back as it was.
    let node = Running::start(&config, Ports::bind(&config).unwrap(), StartMode::Normal).unwrap();
    node.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_alone_can_be_stopped_and_started_again() {
    let mut cluster = Cluster::found(1, |_| {});
    for _ in 0..3 {
        eventually("the node leads", async || Some(cluster.leader().await)).await;
        cluster.stop(0);
        cluster.start(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_entries_are_recorded_where_that_is_asked_for() {
    let mut cluster = Cluster::found(1, |_| {});
    cluster.leader().await;
    cluster.stop(0);
    let path = cluster.configs[0].data_dir.join("applied");
    let options = StartOptions { mode: StartMode::Normal, applied_log: Some(path.clone()) };
    let ports = Ports::bind(&cluster.configs[0]).unwrap();
    cluster.nodes[0] = Some(apart(|| Running::start(&cluster.configs[0], ports, options).unwrap()));
    cluster.leader().await;
    let before = std::fs::metadata(&path).unwrap().len();
    crate::client::publish(cluster.channel(0), crate::client::PLAN).await;
    assert!(std::fs::metadata(&path).unwrap().len() > before);
}
