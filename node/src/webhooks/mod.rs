//! Sending the events of tenants to their webhooks, while this node leads.
//!
//! [`courses`] decides what is due for whom and when, without I/O; [`delivery`] makes what is sent and signs it;
//! [`post`] sends it; [`sender`] is the task that joins them with the book. How far each webhook has been served stands in
//! the book. What was delivered and not written there before leadership was lost is delivered again: at least once.

mod courses;
mod delivery;
mod post;
mod sender;

pub(crate) use sender::{Deliveries, Sender};
