//! Tier 1's interleavings: a million small worlds, each drawn from one seed.
//!
//! A world has a few gateways, a few members with a book each, and everything between them that can go
//! wrong. The gateways are the client crate's own state machines ([`holdfast_client::core`]); the books are
//! the ledger. Only the network, Raft's outcome (what is committed in which order, what is lost) and time
//! are played here. Every choice comes from one tape of numbers ([`Choices`]), so that a world is repeated
//! exactly by its seed and number, and a failing one is shortened by shortening its tape.
//!
//! A [`Tally`](tally::Tally) listens to the committed commands and their answers, and counts for itself:
//! it shares no code with the ledger and predicts every decision.

pub mod choices;
pub mod facts;
pub mod found;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod parked;
pub mod plans;
pub mod run;
pub mod shrink;
pub mod tally;
pub mod world;

pub use choices::Choices;
pub use found::{Found, Kind};
pub use run::{Failing, Options, Report, run};
pub use world::{Ended, Script, play};
