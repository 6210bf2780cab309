//! `holdfast bench`: drive reservations at a cluster and measure.

use crate::failure::{Failure, Outcome};
use crate::settings::Settings;

/// Options of `bench`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Measures and reports.
pub async fn run(_settings: &Settings, _args: Args) -> Outcome {
    Err(Failure::failed("this build cannot measure yet"))
}
