//! Whole clusters on virtual time: the node's own propose, Raft, storage and snapshot code on a
//! single-threaded runtime, with a simulated network, disk and clock, from one seed.
//!
//! The same seed gives the same trace: everything is drawn from streams of the seed, tasks run in
//! the order in which they became runnable, and nothing here looks at real time.

mod clock;
mod convert;
mod door;
mod faults;
mod lazy_disk;
mod links;
mod nemesis;
mod run;
mod scenario;
mod tap;
mod trace;
mod world;

pub use clock::SimClock;
pub use convert::failure_of;
pub use door::{CLIENTS_FROM, SimDoor};
pub use faults::{Fault, FaultLog};
pub use links::SimLinks;
pub use nemesis::Strength;
pub use run::{SimOptions, SimRun, simulate};
pub use scenario::{
    PATIENCE, Scenario, acknowledged_and_lost, acknowledged_but_replaced, read_at_a_former_leader,
};
pub use world::{Mutant, World, WorldOptions};

/// The runtime of the simulation.
pub type Sim = openraft_rt_sim::SimRuntime;
