//! One request of the demo: reserve, start, run, settle.

use std::time::Duration;

use holdfast_proto::v1;
use holdfast_proto::v1::command_answer::Outcome as Answer;

use super::log::{Ended, Seen};
use super::scenario::Caller;
use crate::cluster::{Cluster, Effect};
use crate::commands::new_id;
use crate::failure::{Failure, Kind};
use crate::show::tier;

/// How long a run of the pretended model takes.
const RUN: Duration = Duration::from_millis(60);

/// Sends one request through its whole life and says how it ended.
pub async fn one(cluster: &Cluster, caller: &Caller, user: String) -> Seen {
    let (ended, note) = match admit_and_run(cluster, caller, &user).await {
        Ok(ended) => ended,
        Err(failure) => of_failure(&failure),
    };
    Seen { tenant: caller.tenant.clone(), user, ended, note }
}

async fn admit_and_run(cluster: &Cluster, caller: &Caller, user: &str) -> Result<(Ended, String), Failure> {
    let _ = (cluster, caller, user);
    Err(Failure::failed("not yet"))
}

fn of_failure(failure: &Failure) -> (Ended, String) {
    (Ended::Failed(failure.problem.clone()), String::new())
}
