//! The `holdfast` program: every command is thin, what it does lies in the libraries.

mod args;
mod bench;
mod calls;
mod commands;
mod dev;
mod failure;
mod output;
mod parse;
mod settings;
mod show;
mod stdin;

use std::process::ExitCode;

/// Applying and answering a command takes a dozen small allocations; with the C library's allocator they
/// were a third of a node's CPU time (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// The ledger's deliberate bugs are for the harness: no program that serves is built with them.
const _: () = assert!(!holdfast_ledger::mutants::BUILT_IN);

fn main() -> ExitCode {
    match commands::run(args::Cli::read()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(&failure)
        }
    }
}
