//! What plays a golden script.

pub mod run;
mod script;
mod show;
mod time;
