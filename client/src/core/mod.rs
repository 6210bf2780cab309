//! The decisions of the client, without I/O, clock or randomness: which attempt is next, what an
//! answer means for the caller, which member to ask, how long to pause. Time and random numbers
//! come in as arguments, so that the same code runs in exhaustive interleavings.

mod backoff;
mod call;
mod command_call;
mod held;
mod life;
mod routes;

pub use backoff::Backoff;
pub use call::{Advice, Call, Kind, Reply, Step, Verdict, advice};
pub use command_call::{CommandCall, Next};
pub use held::{Held, LetGo};
pub use life::{End, Life, LifeStep, Stage};
pub use routes::Routes;
