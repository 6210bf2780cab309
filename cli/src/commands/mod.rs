//! One file a command.

pub mod adjust;
pub mod audit;
pub mod bench;
pub mod completion;
pub mod correct;
pub mod dev;
pub mod events;
pub mod get;
pub mod history;
pub mod member;
pub mod plan;
pub mod quota;
pub mod release;
mod reservation;
pub mod reserve;
pub mod route;
pub mod serve;
pub mod settle;
pub mod start;
pub mod statements;
pub mod status;
pub mod tenant;
pub mod unknown;
pub mod webhook;

use crate::args::{Cli, Command};
use crate::failure::{Failure, Outcome};
use crate::settings::Settings;

/// Does what was asked.
pub fn run(cli: Cli) -> Outcome {
    let settings = &Settings::resolve(&cli.global)?;
    match cli.command {
        Command::Dev(args) => wait(dev::run(settings, args)),
        // A node brings its own runtimes.
        Command::Serve(args) => serve::run(settings, args),
        Command::Plan(command) => wait(plan::run(settings, command)),
        Command::Tenant(command) => wait(tenant::run(settings, command)),
        Command::History(args) => wait(history::run(settings, args)),
        Command::Reserve(args) => wait(reserve::run(settings, args)),
        Command::Start(args) => wait(start::run(settings, args)),
        Command::Settle(args) => wait(settle::run(settings, args)),
        Command::Correct(args) => wait(correct::run(settings, args)),
        Command::Release(args) => wait(release::run(settings, args)),
        Command::Get(args) => wait(get::run(settings, args)),
        Command::Unknown(command) => wait(unknown::run(settings, command)),
        Command::Route(command) => wait(route::run(settings, command)),
        Command::Quota(args) => wait(quota::run(settings, args)),
        Command::Adjust(args) => wait(adjust::run(settings, args)),
        Command::Events(args) => wait(events::run(settings, args)),
        Command::Statements(args) => wait(statements::run(settings, args)),
        Command::Status(_) => wait(status::run(settings)),
        Command::Audit(_) => wait(audit::run(settings)),
        Command::Member(command) => wait(member::run(settings, command)),
        Command::Bench(args) => wait_on_one_thread(bench::run(settings, args)),
        Command::Completion(args) => completion::run(&args),
    }
}

/// For the load of a measurement: thousands of callers that wake each other cost less CPU on one thread.
fn wait_on_one_thread(command: impl Future<Output = Outcome>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| Failure::failed(format!("cannot start: {e}")))?.block_on(command)
}

fn wait(command: impl Future<Output = Outcome>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|e| Failure::failed(format!("cannot start: {e}")))?.block_on(command)
}
