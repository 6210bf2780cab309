//! Small scope, whole: every interleaving of four clients with three steps each, for scripts that matter.
//!
//! 369 600 orders a script. Two orders that lead to the same book (but for revisions and slots), the same
//! clock and the same outcomes so far have the same future, so they are followed as one; the count of orders
//! that every state stands for is kept, and must come to 369 600 at the end. Every step is judged by the
//! [tally](crate::interleave::tally), every end by the book's audit and by what the script says must hold
//! always and happen sometimes.

mod canonical;
mod explore;
mod outcome;
mod script;
mod scripts;

pub use explore::{Explored, explore};
pub use outcome::Outcomes;
pub use script::Script;
pub use scripts::all;
