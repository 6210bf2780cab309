//! Whatever stands in a document, reading it ends in a plan or in problems with lines: never in a panic.
//!
//! `HOLDFAST_FUZZ_DOCUMENTS=N` reads that many documents; the seed of each is printed with a failure.
#![allow(clippy::unwrap_used)]

use holdfast_ledger::Plan;
use holdfast_ledger::plan::TenantRecord;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const THREE_LEVEL: &str = include_str!("../../scripts/plans/three-level.yaml");

/// What a mutation puts in: YAML's marks, the format's words, and characters that readers trip over.
const FRAGMENTS: [&str; 62] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "-",
    "? ",
    ": ",
    "- ",
    "\n",
    "\n  ",
    "\t",
    "---",
    "...",
    "%",
    "&a ",
    "*a",
    "!",
    "!!int ",
    "|",
    ">-\n",
    "'",
    "\"",
    "\\",
    "\\x4",
    "#",
    " #",
    "@",
    "`",
    "\r",
    "\u{feff}",
    "\u{85}",
    "\u{2028}",
    "é",
    "\0",
    "<<",
    "~",
    "\"\\\n",
    "%TAG ! x\n",
    "9",
    "  ",
    "_",
    "-1",
    "1e9",
    "18446744073709551616",
    "unlimited",
    "null",
    "CNY",
    "0.5 CNY",
    "15m",
    "tokens",
    "slots",
    "period: ",
    "bucket: ",
    "scope: ",
    "limits: ",
    "tenants: ",
    "users: ",
    "tier: ",
    "schema: ",
    "every: ",
];

fn mutate(random: &mut ChaCha8Rng) -> String {
    let mut text = if random.random_bool(0.8) { THREE_LEVEL.to_owned() } else { String::new() };
    for _ in 0..random.random_range(1..10) {
        let mut at = random.random_range(0..=text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        match random.random_range(0..8) {
            0 => text.truncate(at),
            1 | 2 => {
                let end = (at..text.len()).take(40).rfind(|end| text.is_char_boundary(*end)).unwrap_or(at);
                text.replace_range(at..end, "");
            }
            3 => {
                let lines: Vec<_> = text.lines().map(str::to_owned).collect();
                if let Some(line) = lines.get(random.random_range(0..lines.len().max(1))) {
                    text.insert_str(at, &format!("\n{line}\n"));
                }
            }
            _ => text.insert_str(at, FRAGMENTS[random.random_range(0..FRAGMENTS.len())]),
        }
    }
    text
}

#[test]
fn no_document_makes_the_reader_panic() {
    let documents =
        std::env::var("HOLDFAST_FUZZ_DOCUMENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000_u64);
    let sample = Plan::parse(THREE_LEVEL).unwrap();
    let (mut plans, mut refused) = (0, 0);
    for seed in 0..documents {
        let text = mutate(&mut ChaCha8Rng::seed_from_u64(seed));
        let lines = text.lines().count() + text.matches(['\r', '\u{85}', '\u{2028}']).count() + 1;
        let _ = TenantRecord::parse(&text, &sample);
        match Plan::parse(&text) {
            Ok(plan) => {
                plans += 1;
                assert_eq!(Plan::parse(&text).unwrap(), plan, "seed {seed} reads differently twice");
                assert_eq!(
                    sample.diff(&plan).is_empty(),
                    sample == plan,
                    "seed {seed}: the diff misses a difference"
                );
                for tenant in plan.tenants.values() {
                    assert_eq!(
                        plan.check_record(tenant),
                        [],
                        "seed {seed}: the two checks of a record disagree"
                    );
                }
            }
            Err(problems) => {
                refused += 1;
                assert!(!problems.is_empty(), "seed {seed} is refused for nothing");
                for problem in problems {
                    assert!((1..=lines).contains(&problem.line), "seed {seed}: {problem} of {lines} lines");
                    assert!(
                        problem.to_string().chars().count() < 600,
                        "seed {seed}: {problem} is too long to read"
                    );
                }
            }
        }
    }
    assert!(plans > 0 && refused > 0, "the mutations reach one side only: {plans} plans, {refused} refused");
}
