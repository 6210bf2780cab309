//! Reserve, start and settle capacity on a Holdfast cluster.
//!
//! ```no_run
//! use holdfast_client::{Amounts, CallError, Client, Request, Unit};
//!
//! # async fn run() -> Result<(), CallError> {
//! // Any one member is enough: the client finds the others and the leader.
//! let client = Client::connect(["127.0.0.1:7401"]).await?;
//!
//! // Admission: the whole amount is held on every limit that applies, or nothing is.
//! let request = Request::new("acme", "chat.generate").user("u1").model("large").tokens(600);
//! let mut reservation = match client.reserve(request).await {
//!     Ok(reservation) => reservation,
//!     // A decision. Nothing is held; the limit says when to come back, if waiting helps.
//!     Err(CallError::Rejected(failure)) => {
//!         println!("refused: {failure}, retry after {:?} ms", failure.facts.retry_after_ms);
//!         return Ok(());
//!     }
//!     // It may be held. Ask by the same id; never reserve again under a new one.
//!     Err(CallError::Unknown(unknown)) => {
//!         let decided = client.resolve(*unknown).await?;
//!         client.adopt(decided)?
//!     }
//!     // Certainly nothing is held: the call was malformed, or the cluster is out of reach.
//!     Err(error) => return Err(error),
//! };
//! println!("admitted as {} at tier {}", reservation.id(), reservation.tier().as_str());
//!
//! // The work begins only once the ledger knows of it, and ends with what it really used.
//! reservation.start("op-7f3a").await?;
//! let used = 212;
//! reservation.settle(Amounts::NONE.with(Unit::Tokens, used)).await?;
//!
//! // Waits for background releases and closes the connections.
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What it does for its callers
//!
//! - **One stream.** Calls of many tasks share one batched stream per member; what is queued goes
//!   into one message. Clone the [`Client`] freely.
//! - **Retries by the same id.** Until the call's deadline, lost connections, elections and overload
//!   only cost time. Attempts are counted, so that the ledger knows a repeated one.
//! - **Four ways to fail**, never merged: see [`CallError`]. *Unavailable* is said only when every
//!   attempt was certainly not done.
//! - **No trace of a refusal.** A reserve that is refused while an earlier attempt is unanswered
//!   releases its id before the refusal is reported, so that the earlier attempt can hold nothing.
//! - **A guard.** A dropped [`Reservation`] is released in the background if it was not started.
//!
//! # Architecture invariants
//!
//! - Decisions are made in [`core`], which knows no I/O, clock or randomness.
//! - No lock is held across an await. Every queue is bounded; every task has an owner that awaits it
//!   ([`Client::close`]).
//! - This crate knows neither Raft nor disks.

mod abandoned;
mod admin;
mod client;
pub mod core;
mod dial;
mod error;
mod events;
pub mod limits;
mod link;
mod options;
mod peer;
mod request;
mod reservation;
mod router;
mod unary;

pub use client::Client;
pub use error::{CallError, Unknown};
pub use events::Events;
pub use holdfast_proto::answers::{Decided, DigestAt, Done};
pub use holdfast_proto::ledger::answer::{Receipt, Rejection, State, Tier};
pub use holdfast_proto::ledger::{Amounts, Command, ReservationId, Unit};
pub use holdfast_proto::{ErrorReason, Failure, FieldError, LeaderHint, v1};
pub use options::ClientBuilder;
pub use request::Request;
pub use reservation::Reservation;
