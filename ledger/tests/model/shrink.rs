//! The shortest script that still shows a difference, found by leaving steps out.

use crate::drive::{Difference, Tamper, run};
use crate::script::{Act, Script};

/// What a difference is about, without its figures: shrinking must not wander off to another one.
fn kind(difference: &Difference) -> String {
    difference.text.lines().next().unwrap_or("").chars().filter(char::is_ascii_alphabetic).take(60).collect()
}

/// Leaves out ever smaller pieces as long as the script still fails in the same way.
pub fn shrink(script: &Script, tamper: Option<Tamper>) -> (Script, Option<Difference>) {
    let mut best = script.clone();
    let mut difference = run(&best, tamper).err();
    if let Some(found) = &difference {
        best.steps.truncate(found.step + 1);
    }
    let mut piece = best.steps.len() / 2;
    while piece >= 1 {
        let mut from = 0;
        while from < best.steps.len() {
            let mut shorter = best.clone();
            let to = (from + piece).min(shorter.steps.len());
            // The time that the left-out steps took is kept, so that what is left happens when it did.
            let skipped: i64 =
                shorter.steps[from..to].iter().filter(|step| !step.joins).map(|step| step.after_ms).sum();
            shorter.steps.drain(from..to);
            if let Some(next) = shorter.steps.get_mut(from) {
                next.after_ms += skipped;
            }
            match run(&shorter, tamper) {
                Err(found) if difference.as_ref().is_some_and(|first| kind(first) == kind(&found)) => {
                    best = shorter;
                    difference = Some(found);
                }
                _ => from += piece,
            }
        }
        piece /= 2;
    }
    (best, difference)
}

/// A failure as it is printed: the seed, the plan, the steps, and what differs.
pub fn report(seed: u64, script: &Script, difference: &Difference) -> String {
    let mut text = format!("seed {seed}, {} steps\n", script.steps.len());
    for (number, document) in script.documents.iter().enumerate() {
        let published =
            |act: &Act| matches!(act, Act::Publish { variant, .. } if usize::from(*variant) == number);
        if script.steps.iter().any(|step| published(&step.act)) {
            text += &format!("plan {number}:\n{document}");
        }
    }
    for (at, step) in script.steps.iter().enumerate() {
        let joins = if step.joins { " (same entry)" } else { "" };
        text += &format!("{at:3}: {:+} ms{joins} {:?}\n", step.after_ms, step.act);
    }
    text + &format!("after step {}: {}", difference.step, difference.text)
}
