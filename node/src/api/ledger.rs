//! The `Ledger` service: the life of a reservation, call by call or on a stream.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::Stream;
use holdfast_ledger::Command;
use holdfast_ledger::ids::ReservationId;
use holdfast_proto::answers::encode_answer;
use holdfast_proto::{Failure, FieldError, v1};
use tonic::{Request, Response, Status, Streaming};

use super::connections::Connection;
use super::{Context, batch, deadline, failures};

/// The service on one node.
pub(super) struct LedgerService {
    pub(super) cx: Arc<Context>,
}

type Answers = Pin<Box<dyn Stream<Item = Result<v1::BatchResponse, Status>> + Send>>;

impl LedgerService {
    /// Decodes one command, proposes it, and encodes its answer.
    async fn handle_command<W>(&self, request: Request<W>) -> Result<Response<v1::CommandAnswer>, Status>
    where
        W: Into<v1::batch_command::Command>,
    {
        let outcome = self.decide(request).await;
        outcome.map(Response::new).map_err(|failure| self.cx.status(failure))
    }

    async fn decide<W>(&self, request: Request<W>) -> Result<v1::CommandAnswer, Failure>
    where
        W: Into<v1::batch_command::Command>,
    {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let command = decode(&request.into_inner().into())?;
        let (answer, revision) = self.cx.propose_one(command, at).await?;
        encode_answer(&answer, revision, None)
    }
}

/// As in a batch, but the field's path begins at the call's own message.
fn decode(wire: &v1::batch_command::Command) -> Result<Command, FieldError> {
    use v1::batch_command::Command as Wire;
    Ok(match wire {
        Wire::Reserve(wire) => Command::Reserve(wire.try_into()?),
        Wire::Start(wire) => Command::Start(wire.try_into()?),
        Wire::Settle(wire) => Command::Settle(wire.try_into()?),
        Wire::Correct(wire) => Command::Correct(wire.try_into()?),
        Wire::Renew(wire) => Command::Renew(wire.try_into()?),
        Wire::Release(wire) => Command::Release(wire.try_into()?),
        Wire::ReportUnknown(wire) => Command::ReportUnknown(wire.try_into()?),
    })
}

/// Gives a request its place among the commands of a batch.
struct As<T>(T);

macro_rules! batched {
    ($($wire:ident => $variant:ident),*) => {$(
        impl From<As<v1::$wire>> for v1::batch_command::Command {
            fn from(As(wire): As<v1::$wire>) -> Self {
                v1::batch_command::Command::$variant(wire)
            }
        }
    )*};
}
batched!(
    ReserveRequest => Reserve, StartRequest => Start, SettleRequest => Settle,
    CorrectRequest => Correct, RenewRequest => Renew, ReleaseRequest => Release, ReportUnknownRequest => ReportUnknown
);

#[tonic::async_trait]
impl v1::ledger_server::Ledger for LedgerService {
    type BatchStream = Answers;

    async fn reserve(&self, r: Request<v1::ReserveRequest>) -> Result<Response<v1::CommandAnswer>, Status> {
        self.handle_command(r.map(As)).await
    }

    async fn start(&self, r: Request<v1::StartRequest>) -> Result<Response<v1::CommandAnswer>, Status> {
        self.handle_command(r.map(As)).await
    }

    async fn settle(&self, r: Request<v1::SettleRequest>) -> Result<Response<v1::CommandAnswer>, Status> {
        self.handle_command(r.map(As)).await
    }

    async fn correct(&self, r: Request<v1::CorrectRequest>) -> Result<Response<v1::CommandAnswer>, Status> {
        self.handle_command(r.map(As)).await
    }

    async fn renew(&self, r: Request<v1::RenewRequest>) -> Result<Response<v1::CommandAnswer>, Status> {
        self.handle_command(r.map(As)).await
    }

    async fn release(&self, r: Request<v1::ReleaseRequest>) -> Result<Response<v1::CommandAnswer>, Status> {
        self.handle_command(r.map(As)).await
    }

    async fn report_unknown(
        &self,
        r: Request<v1::ReportUnknownRequest>,
    ) -> Result<Response<v1::CommandAnswer>, Status> {
        self.handle_command(r.map(As)).await
    }

    async fn get_reservation(
        &self,
        request: Request<v1::GetReservationRequest>,
    ) -> Result<Response<v1::GetReservationResponse>, Status> {
        self.cx.answer(self.read_reservation(request).await)
    }

    async fn batch(
        &self,
        request: Request<Streaming<v1::BatchRequest>>,
    ) -> Result<Response<Answers>, Status> {
        let cx = &self.cx;
        // Only a deadline that the caller set bounds the stream: without one it lives as long as both sides.
        let given = request.metadata().contains_key("grpc-timeout");
        let at =
            deadline::of_call(request.metadata(), cx.bounds.deadline).map_err(|e| cx.status(e.into()))?;
        let connection = request.extensions().get::<Connection>().cloned();
        let connection =
            connection.ok_or_else(|| cx.status(failures::node_failed("a call without a connection")))?;
        let answers = batch::answers(Arc::clone(cx), connection, request.into_inner(), given.then_some(at));
        Ok(Response::new(Box::pin(answers)))
    }
}

impl LedgerService {
    async fn read_reservation(
        &self,
        request: Request<v1::GetReservationRequest>,
    ) -> Result<v1::GetReservationResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let wire = request.into_inner();
        let id: ReservationId = wire.id.parse().map_err(|error| FieldError::new("id", format!("{error}")))?;
        self.cx.point(wire.stale, at).await?;
        let now_ms = self.cx.now_ms();
        let (revision, receipt) =
            self.cx.replica().read(|book| (book.revision(), book.reservation(id, now_ms)));
        let receipt =
            receipt.ok_or_else(|| failures::not_found(format!("reservation {id}")).at_revision(revision))?;
        Ok(v1::GetReservationResponse { revision, receipt: Some((&receipt).into()) })
    }
}
