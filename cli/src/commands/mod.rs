//! One file a command.

pub mod audit;
pub mod bench;
pub mod completion;
pub mod dev;
pub mod get;
pub mod history;
pub mod member;
pub mod plan;
pub mod quota;
pub mod release;
mod reservation;
pub mod reserve;
pub mod serve;
pub mod settle;
pub mod start;
pub mod status;
pub mod tenant;

use crate::args::{Cli, Command};
use crate::failure::Outcome;
use crate::settings::Settings;

/// Does what was asked.
pub async fn run(cli: Cli) -> Outcome {
    let settings = Settings::resolve(&cli.global)?;
    match cli.command {
        Command::Dev(args) => dev::run(&settings, args).await,
        Command::Serve(args) => serve::run(&settings, args).await,
        Command::Plan(command) => plan::run(&settings, command).await,
        Command::Tenant(command) => tenant::run(&settings, command).await,
        Command::History(args) => history::run(&settings, args).await,
        Command::Reserve(args) => reserve::run(&settings, args).await,
        Command::Start(args) => start::run(&settings, args).await,
        Command::Settle(args) => settle::run(&settings, args).await,
        Command::Release(args) => release::run(&settings, args).await,
        Command::Get(args) => get::run(&settings, args).await,
        Command::Quota(args) => quota::run(&settings, args).await,
        Command::Status(_) => status::run(&settings).await,
        Command::Audit(_) => audit::run(&settings).await,
        Command::Member(command) => member::run(&settings, command).await,
        Command::Bench(args) => bench::run(&settings, args).await,
        Command::Completion(args) => completion::run(&args),
    }
}
