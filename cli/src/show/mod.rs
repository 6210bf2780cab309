//! Wire messages as JSON documents and as text for people.

mod adjustment;
mod plan_status;
mod quota;
mod receipt;
mod words;

pub use adjustment::{adjustment_document, adjustment_text};
pub use plan_status::{plan_status_document, plan_status_text};
pub use quota::{quota_document, quota_text};
pub use receipt::{amounts_text, receipt_document, receipt_text};
pub use words::{at_ms, bytes_hex, hours_minutes, instant, role, state, unit};
