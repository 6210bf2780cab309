//! Members that do what a test says: each command comes to the test, which answers it, refuses
//! it, answers it twice, ends the stream, or lets it lie.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_client::v1::batch_answer::Outcome;
use holdfast_client::v1::batch_command::Command as Wire;
use holdfast_client::v1::command_answer::Outcome as Done;
use holdfast_client::v1::ledger_server::{Ledger, LedgerServer};
use holdfast_client::v1::members_server::{Members, MembersServer};
use holdfast_client::v1::plans_server::{Plans, PlansServer};
use holdfast_client::{Failure, v1};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

/// No test waits longer for anything than this.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A member under the test's control.
pub struct Fake {
    pub address: String,
    asked: mpsc::UnboundedReceiver<Asked>,
    published: mpsc::UnboundedReceiver<Published>,
    member: Member,
}

/// A command that came over a stream.
pub struct Asked {
    pub command: v1::BatchCommand,
    /// Which stream of the member it came on, from 1.
    pub stream: usize,
    /// Which message of the stream it came in, from 1.
    pub message: usize,
    answers: mpsc::Sender<Result<v1::BatchResponse, Status>>,
}

/// A publish that came.
pub struct Published {
    pub request: v1::PublishRequest,
    pub answer: tokio::sync::oneshot::Sender<Result<v1::PublishResponse, Status>>,
}

#[derive(Clone)]
struct Member {
    asked: mpsc::UnboundedSender<Asked>,
    published: mpsc::UnboundedSender<Published>,
    streams: Arc<AtomicUsize>,
    /// New streams are refused with this.
    refusal: Arc<Mutex<Option<Status>>>,
    list: Arc<Mutex<v1::ListMembersResponse>>,
    credential: Arc<Mutex<Option<String>>>,
}

impl Fake {
    pub async fn spawn() -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (asked_to, asked) = mpsc::unbounded_channel();
        let (published_to, published) = mpsc::unbounded_channel();
        let member = Member {
            asked: asked_to,
            published: published_to,
            streams: Arc::default(),
            refusal: Arc::default(),
            list: Arc::default(),
            credential: Arc::default(),
        };
        let serving = Server::builder()
            .add_service(LedgerServer::new(member.clone()))
            .add_service(MembersServer::new(member.clone()))
            .add_service(PlansServer::new(member.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(serving);
        Fake { address, asked, published, member }
    }

    /// What this member says when it is asked for the members.
    pub fn lists(&self, members: &[&str]) {
        let member = |(at, address): (usize, &&str)| v1::Member {
            id: at as u64 + 1,
            client_address: (*address).to_owned(),
            ..Default::default()
        };
        let members = members.iter().enumerate().map(member).collect();
        *self.member.list.lock().unwrap() = v1::ListMembersResponse { members, ..Default::default() };
    }

    /// From now on every new stream is refused.
    pub fn refuses_streams(&self, status: Status) {
        *self.member.refusal.lock().unwrap() = Some(status);
    }

    /// How many streams were opened.
    pub fn streams(&self) -> usize {
        self.member.streams.load(Ordering::SeqCst)
    }

    /// The `authorization` of the last stream.
    pub fn credential(&self) -> Option<String> {
        self.member.credential.lock().unwrap().clone()
    }

    /// The next command that comes.
    pub async fn next(&mut self) -> Asked {
        tokio::time::timeout(PATIENCE, self.asked.recv()).await.expect("a command should have come").unwrap()
    }

    /// The next publish that comes.
    pub async fn next_publish(&mut self) -> Published {
        let next = tokio::time::timeout(PATIENCE, self.published.recv()).await;
        next.expect("a publish should have come").unwrap()
    }

    /// Whether a command has come that the test has not taken.
    pub fn nothing_came(&mut self) -> bool {
        self.asked.try_recv().is_err()
    }
}

impl Asked {
    pub fn id(&self) -> String {
        match self.command.command.as_ref().unwrap() {
            Wire::Reserve(command) => command.id.clone(),
            Wire::Start(command) => command.id.clone(),
            Wire::Settle(command) => command.id.clone(),
            Wire::Renew(command) => command.id.clone(),
            Wire::Release(command) => command.id.clone(),
            Wire::ReportUnknown(command) => command.id.clone(),
            Wire::Correct(command) => command.id.clone(),
        }
    }

    /// The attempt number, if it is a reserve.
    pub fn attempt(&self) -> Option<u32> {
        match self.command.command.as_ref().unwrap() {
            Wire::Reserve(command) => Some(command.attempt),
            _ => None,
        }
    }

    pub fn is_release(&self) -> bool {
        matches!(self.command.command, Some(Wire::Release(_)))
    }

    /// The receipt that an obliging book would give.
    pub fn receipt(&self) -> v1::Receipt {
        use v1::ReservationState as State;
        let (state, operation) = match self.command.command.as_ref().unwrap() {
            Wire::Reserve(_) | Wire::Renew(_) => (State::Reserved, None),
            Wire::Start(command) => (State::Started, Some(command.operation.clone())),
            Wire::Settle(command) => (State::Settled, Some(command.operation.clone())),
            Wire::Correct(command) => (State::Settled, Some(command.operation.clone())),
            Wire::Release(_) => (State::Released, None),
            Wire::ReportUnknown(command) => (State::UsageUnknown, Some(command.operation.clone())),
        };
        v1::Receipt {
            id: self.id(),
            state: state as i32,
            tenant: "acme".into(),
            route: "chat".into(),
            request_digest: vec![0; 32].into(),
            tier: v1::Tier::Normal as i32,
            operation,
            ..Default::default()
        }
    }

    pub async fn answer(&self) {
        let done = Done::Receipt(self.receipt());
        self.answer_with(v1::CommandAnswer { revision: 1, digest: None, outcome: Some(done) }).await;
    }

    pub async fn tombstone(&self) {
        let done = Done::Tombstone(v1::Tombstone { id: self.id() });
        self.answer_with(v1::CommandAnswer { revision: 1, digest: None, outcome: Some(done) }).await;
    }

    pub async fn answer_with(&self, answer: v1::CommandAnswer) {
        self.send(Outcome::Answer(answer)).await;
    }

    pub async fn refuse(&self, failure: Failure) {
        self.send(Outcome::Failure(failure.into())).await;
    }

    pub async fn send(&self, outcome: Outcome) {
        let answer = v1::BatchAnswer { correlation: self.command.correlation, outcome: Some(outcome) };
        let _ = self.answers.send(Ok(v1::BatchResponse { answers: vec![answer] })).await;
    }

    /// Ends the stream as a proxy or a dying process does: with a status that says nothing of ours.
    pub async fn end_stream(&self) {
        let _ = self.answers.send(Err(Status::unavailable("connection reset"))).await;
    }
}

/// An address where nobody listens.
pub async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tonic::async_trait]
impl Ledger for Member {
    type BatchStream = ReceiverStream<Result<v1::BatchResponse, Status>>;

    async fn batch(
        &self,
        request: Request<Streaming<v1::BatchRequest>>,
    ) -> Result<Response<Self::BatchStream>, Status> {
        let credential = request.metadata().get("authorization");
        let credential = credential.map(|value| value.to_str().unwrap().to_owned());
        *self.credential.lock().unwrap() = credential;
        if let Some(refusal) = self.refusal.lock().unwrap().clone() {
            return Err(refusal);
        }
        let stream = self.streams.fetch_add(1, Ordering::SeqCst) + 1;
        let (answers, stream_of_answers) = mpsc::channel(1_024);
        let asked = self.asked.clone();
        let mut commands = request.into_inner();
        tokio::spawn(async move {
            let mut message = 0;
            while let Ok(Some(batch)) = commands.message().await {
                message += 1;
                for command in batch.commands {
                    let _ = asked.send(Asked { command, stream, message, answers: answers.clone() });
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(stream_of_answers)))
    }

    async fn reserve(&self, _: Request<v1::ReserveRequest>) -> Answered {
        Err(unscripted())
    }
    async fn start(&self, _: Request<v1::StartRequest>) -> Answered {
        Err(unscripted())
    }
    async fn settle(&self, _: Request<v1::SettleRequest>) -> Answered {
        Err(unscripted())
    }
    async fn correct(&self, _: Request<v1::CorrectRequest>) -> Answered {
        Err(unscripted())
    }
    async fn renew(&self, _: Request<v1::RenewRequest>) -> Answered {
        Err(unscripted())
    }
    async fn release(&self, _: Request<v1::ReleaseRequest>) -> Answered {
        Err(unscripted())
    }
    async fn report_unknown(&self, _: Request<v1::ReportUnknownRequest>) -> Answered {
        Err(unscripted())
    }
    async fn get_reservation(
        &self,
        _: Request<v1::GetReservationRequest>,
    ) -> Result<Response<v1::GetReservationResponse>, Status> {
        Err(unscripted())
    }
}

type Answered = Result<Response<v1::CommandAnswer>, Status>;

fn unscripted() -> Status {
    Status::unimplemented("not scripted")
}

#[tonic::async_trait]
impl Members for Member {
    async fn status(&self, _: Request<v1::StatusRequest>) -> Result<Response<v1::StatusResponse>, Status> {
        Err(unscripted())
    }
    async fn list(
        &self,
        _: Request<v1::ListMembersRequest>,
    ) -> Result<Response<v1::ListMembersResponse>, Status> {
        Ok(Response::new(self.list.lock().unwrap().clone()))
    }
    async fn transfer_leader(
        &self,
        _: Request<v1::TransferLeaderRequest>,
    ) -> Result<Response<v1::TransferLeaderResponse>, Status> {
        Err(unscripted())
    }
}

#[tonic::async_trait]
impl Plans for Member {
    async fn publish(
        &self,
        request: Request<v1::PublishRequest>,
    ) -> Result<Response<v1::PublishResponse>, Status> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let _ = self.published.send(Published { request: request.into_inner(), answer });
        let answer = answered.await.map_err(|_| Status::internal("the test forgot it"))?;
        answer.map(Response::new)
    }
    async fn get(&self, _: Request<v1::GetPlanRequest>) -> Result<Response<v1::GetPlanResponse>, Status> {
        Err(unscripted())
    }
    async fn list(
        &self,
        _: Request<v1::ListPlansRequest>,
    ) -> Result<Response<v1::ListPlansResponse>, Status> {
        Err(unscripted())
    }
    async fn diff(
        &self,
        _: Request<v1::DiffPlansRequest>,
    ) -> Result<Response<v1::DiffPlansResponse>, Status> {
        Err(unscripted())
    }
    async fn rollback(
        &self,
        _: Request<v1::RollbackRequest>,
    ) -> Result<Response<v1::PublishResponse>, Status> {
        Err(unscripted())
    }
    async fn status(
        &self,
        _: Request<v1::PlanStatusRequest>,
    ) -> Result<Response<v1::PlanStatusResponse>, Status> {
        Err(unscripted())
    }
    async fn set_tenant(
        &self,
        _: Request<v1::SetTenantRequest>,
    ) -> Result<Response<v1::PublishResponse>, Status> {
        Err(unscripted())
    }
    async fn get_tenant(
        &self,
        _: Request<v1::GetTenantRequest>,
    ) -> Result<Response<v1::GetTenantResponse>, Status> {
        Err(unscripted())
    }
    async fn list_tenants(
        &self,
        _: Request<v1::ListTenantsRequest>,
    ) -> Result<Response<v1::ListTenantsResponse>, Status> {
        Err(unscripted())
    }
    async fn set_webhook(
        &self,
        _: Request<v1::SetWebhookRequest>,
    ) -> Result<Response<v1::SetWebhookResponse>, Status> {
        Err(unscripted())
    }
    async fn list_webhooks(
        &self,
        _: Request<v1::ListWebhooksRequest>,
    ) -> Result<Response<v1::ListWebhooksResponse>, Status> {
        Err(unscripted())
    }
}
