//! The `holdfast` program: every command is thin, what it does lies in the libraries.

mod args;
mod cluster;
mod commands;
mod dev;
mod failure;
mod output;
mod parse;
mod settings;
mod show;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("holdfast: cannot start: {e}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(commands::run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(&failure)
        }
    }
}
