//! The live heap: what was allocated and not freed.

use std::error::Error;

use cap::Cap;
use mimalloc::MiMalloc;

use super::{Run, resident_bytes};

/// Counts what is allocated and not freed; below it is the allocator of the program.
#[global_allocator]
static ALLOCATOR: Cap<MiMalloc> = Cap::new(MiMalloc, usize::MAX);

/// Prints what a run holds; its live heap, bytes.
pub fn show(run: &Run, when: &str) -> Result<usize, Box<dyn Error>> {
    let (live, counts) = (ALLOCATOR.allocated(), run.book.counts());
    println!(
        "{when}: {} KiB live, {} KiB resident; {} lineages, {} reservations remembered",
        live / 1024,
        resident_bytes()? / 1024,
        counts.lineages,
        counts.remembered
    );
    Ok(live)
}

/// That the live heap came back to what it was, within a tenth.
pub fn judge(before: usize, after: usize) -> Result<(), Box<dyn Error>> {
    println!("{:.1} % of what it was", after as f64 * 100.0 / before as f64);
    if after > before + before / 10 {
        return Err("memory did not come back to what it was + 10 %".into());
    }
    Ok(())
}
