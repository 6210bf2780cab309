//! A whole cluster on this machine, for `holdfast dev` and for measurements.

mod demo;
mod fleet;
mod layout;
mod ports;
mod running;
mod stop;

pub use demo::demo;
pub use layout::Wanted;
pub use running::Running;
pub use stop::StopSignal;
