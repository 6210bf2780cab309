//! `holdfast quota`: what a tenant or a user has used and has left.

use crate::calls;
use crate::failure::Outcome;
use crate::settings::Settings;
use crate::show::{quota_document, quota_text};

/// Options of `quota`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The tenant
    tenant: String,
    /// One of its users: adds the limits of the user level
    #[arg(long)]
    user: Option<String>,
    /// What was booked in the shadow lane, where nothing is refused
    #[arg(long)]
    shadow: bool,
    /// Answer from what the asked member has applied, which may be behind
    #[arg(long)]
    stale: bool,
}

/// Asks and shows.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let client = calls::client(settings)?;
    let client = if args.stale { client.with_stale_reads() } else { client };
    let user = args.user.as_deref();
    let answer = match args.shadow {
        false => client.quota(&args.tenant, user).await,
        true => client.quota_in_shadow(&args.tenant, user).await,
    };
    let quota = answer.map_err(|error| calls::failure(&format!("quota of {}", args.tenant), error))?;
    settings.output.show(&quota_document(&args.tenant, user, &quota), || quota_text(&quota))
}
