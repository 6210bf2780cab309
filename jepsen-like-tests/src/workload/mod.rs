//! What the clients do: lives of reservations on a hot tenant and on spread ones.
//!
//! A [`Session`] is one client's state machine without I/O: the simulator and torment
//! drive the same one.

mod plan;
mod session;

pub use plan::{PlanShape, document, limit_names, tenant_names};
pub use session::{Mix, Session};
