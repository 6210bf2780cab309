//! The command line.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands;
use crate::settings::Global;

/// Capacity that is reserved first and settled exactly once
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused, 4 unavailable (nothing was done), 5 outcome unknown.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, propagate_version = true, subcommand_required = true)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads the program's arguments; wrong ones end the process with their exit code.
    pub fn read() -> Cli {
        let mut command = Cli::command();
        let matches = command.clone().get_matches();
        let write_out_flag = matches.value_source("write_out") == Some(ValueSource::CommandLine);
        match Cli::from_arg_matches(&matches) {
            // Not a conflict for clap to see: it would count the environment's value as one, which a flag beats.
            Ok(cli) if cli.global.json && write_out_flag => {
                let problem = "the argument '--json' cannot be used with '--write-out <WRITE_OUT>'";
                command.error(ErrorKind::ArgumentConflict, problem).exit()
            }
            Ok(cli) => cli,
            Err(error) => error.format(&mut command).exit(),
        }
    }
}

/// One variant a command; what each does is in its own file.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a whole cluster on this machine, with a sample plan and demo traffic
    Dev(commands::dev::Args),
    /// Run one node
    Serve(commands::serve::Args),
    /// Check, apply, show and compare plans
    #[command(subcommand)]
    Plan(commands::plan::Command),
    /// Set, show and list the records of tenants
    #[command(subcommand)]
    Tenant(commands::tenant::Command),
    /// Show what has ended: reservations and events beyond the live window
    History(commands::history::Args),
    /// Hold capacity
    Reserve(commands::reserve::Args),
    /// Bind an operation to a reservation
    Start(commands::start::Args),
    /// End a started reservation with what it used
    Settle(commands::settle::Args),
    /// Put the usage of an estimated settlement right, once
    Correct(commands::correct::Args),
    /// End a reservation that was not started
    Release(commands::release::Args),
    /// Show a reservation
    Get(commands::get::Args),
    /// Show and resolve reservations whose usage nobody knows
    #[command(subcommand)]
    Unknown(commands::unknown::Command),
    /// Freeze and unfreeze a route for a tenant or a user
    #[command(subcommand)]
    Route(commands::route::Command),
    /// Show what a tenant or a user has used and has left
    Quota(commands::quota::Args),
    /// Book by hand: grant, take, charge, correct, set usage, boost
    Adjust(commands::adjust::Args),
    /// Show what happened, and follow it
    Events(commands::events::Args),
    /// Show what was used in accounting epochs that have ended
    Statements(commands::statements::Args),
    /// Show every member: role, term, log, lag
    Status(commands::status::Args),
    /// Check the account equation on every member
    Audit(commands::audit::Args),
    /// Show the membership
    #[command(subcommand)]
    Member(commands::member::Command),
    /// Measure: drive reservations at a cluster
    Bench(commands::bench::Args),
    /// Print a completion script for a shell
    Completion(commands::completion::Args),
}
