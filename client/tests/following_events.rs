//! Following events over members that go away.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use holdfast_client::v1::quotas_server::{Quotas, QuotasServer};
use holdfast_client::{CallError, Client, ErrorReason, Failure, v1};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// No test waits longer for anything than this.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a stream goes: what it says from the number that is asked for on.
type Script = fn(u64) -> Vec<Result<v1::WatchEventsResponse, Status>>;

/// A member whose streams go as the script says.
struct Member {
    script: Script,
    asked: mpsc::UnboundedSender<u64>,
}

impl Member {
    async fn spawn(script: Script) -> (String, mpsc::UnboundedReceiver<u64>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (asked, received) = mpsc::unbounded_channel();
        let serving = Server::builder()
            .add_service(QuotasServer::new(Member { script, asked }))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(serving);
        (address, received)
    }
}

#[tonic::async_trait]
impl Quotas for Member {
    type WatchEventsStream = ReceiverStream<Result<v1::WatchEventsResponse, Status>>;

    async fn get_quota(
        &self,
        _: Request<v1::GetQuotaRequest>,
    ) -> Result<Response<v1::GetQuotaResponse>, Status> {
        Err(Status::unimplemented("not scripted"))
    }

    async fn list_statements(
        &self,
        _: Request<v1::ListStatementsRequest>,
    ) -> Result<Response<v1::ListStatementsResponse>, Status> {
        Err(Status::unimplemented("not scripted"))
    }

    async fn watch_events(
        &self,
        request: Request<v1::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let from = request.get_ref().from;
        self.asked.send(from).unwrap();
        let (out, answers) = mpsc::channel(16);
        for answer in (self.script)(from) {
            out.send(answer).await.unwrap();
        }
        Ok(Response::new(ReceiverStream::new(answers)))
    }
}

fn events(range: std::ops::Range<u64>) -> Result<v1::WatchEventsResponse, Status> {
    let next = range.end;
    let events = range.map(|sequence| v1::Event { sequence, ..Default::default() }).collect();
    Ok(v1::WatchEventsResponse { events, next })
}

async fn sequences(following: &mut holdfast_client::Events) -> Option<Vec<u64>> {
    let next = tokio::time::timeout(PATIENCE, following.next()).await.unwrap().unwrap();
    next.map(|events| events.iter().map(|event| event.sequence).collect())
}

fn client(members: &[&str]) -> Client {
    Client::builder(members.iter().copied()).deadline(PATIENCE).connect_lazy().unwrap()
}

#[tokio::test]
async fn a_lost_stream_goes_on_where_it_ended() {
    // A reset, an end in order as a leader stops, and an answer that is only for others.
    let (address, mut asked) = Member::spawn(|from| match from {
        0 => vec![events(5..7), Err(Status::unavailable("connection reset"))],
        7 => vec![Ok(v1::WatchEventsResponse { events: Vec::new(), next: 9 })],
        9 => {
            let stopping = Failure::new(ErrorReason::ShuttingDown, "stopping").to_status();
            vec![events(9..10), Err(stopping)]
        }
        _ => vec![events(from..from + 1)],
    })
    .await;
    let mut following = client(&[&address]).events(0, true, None);
    assert_eq!(sequences(&mut following).await, Some(vec![5, 6]));
    assert_eq!(sequences(&mut following).await, Some(vec![9]));
    assert_eq!(sequences(&mut following).await, Some(vec![10]));
    assert_eq!(following.position(), 11);
    let mut asked_for = Vec::new();
    while let Ok(from) = asked.try_recv() {
        asked_for.push(from);
    }
    assert_eq!(asked_for, [0, 7, 9, 10]);
}

#[tokio::test]
async fn another_member_goes_on_when_one_is_gone() {
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let (address, _asked) = Member::spawn(|from| vec![events(from..from + 2)]).await;
    let mut following = client(&[&gone, &address]).events(3, false, None);
    assert_eq!(sequences(&mut following).await, Some(vec![3, 4]));
    assert_eq!(sequences(&mut following).await, None, "it ends with the last one there is");
}

#[tokio::test]
async fn events_that_are_gone_are_an_error_and_not_a_gap() {
    let (address, _asked) = Member::spawn(|_| {
        let gone = Failure::new(ErrorReason::EventsGone, "too late").with_metadata("first_kept", 40);
        vec![Err(gone.to_status())]
    })
    .await;
    let mut following = client(&[&address]).events(3, true, None);
    let error = following.next().await.unwrap_err();
    let CallError::Rejected(failure) = error else { panic!("{error}") };
    assert_eq!(failure.facts.metadata["first_kept"], "40");
}
