//! The page of a run of interleavings.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use super::bars::bars;
use super::{STYLE, escape};
use crate::interleave::{Kind, Report};

/// The page: the figures, what happened, how long outcomes were unknown, and the shortest failing script.
pub fn html(report: &Report, seed: u64, command: &str, script: &[String]) -> String {
    let verdict = if report.violations() == 0 { "pass" } else { "violation" };
    let mut rows = String::new();
    let mut row = |name: &str, value: String| {
        let _ = write!(rows, "<tr><th>{name}</th><td>{}</td></tr>", escape(&value));
    };
    row("worlds", report.played.to_string());
    row("seed", seed.to_string());
    row("seconds", format!("{:.1}", report.seconds));
    row("trace", format!("{:016x}", report.trace));
    for kind in Kind::ALL {
        row(kind.as_str(), report.by_kind.get(&kind).copied().unwrap_or(0).to_string());
    }
    row("double use of a shard", "not in this build: there are no shards yet".to_owned());
    row("fairness", "not in this build: there is no scheduler yet".to_owned());
    row("reproduce", command.to_owned());
    let counts = &report.counts;
    let happened = [
        ("requests", counts.requests),
        ("settled", counts.settled),
        ("refused", counts.refused),
        ("fast", counts.refused_fast),
        ("lost", counts.lost),
        ("repeated", counts.repeated),
        ("late", counts.late),
        ("leaders", counts.leaders),
        ("cuts", counts.cuts),
        ("deaths", counts.gateways_lost),
        ("clocks", counts.clock_steps),
        ("restores", counts.restores),
        ("publishes", counts.publishes),
        ("receipts", counts.receipts),
    ];
    let happened: Vec<_> = happened.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect();
    let plots = [
        bars(&happened, "what happened in all worlds (heights are roots)"),
        bars(&parts(&report.commands), "worlds by the commands that they committed"),
        bars(
            &parts(&report.unknown_ms),
            "unknown outcomes by how long they were unknown, ms of the world's time",
        ),
    ]
    .concat();
    let mut findings = String::new();
    for failing in &report.failing {
        for found in &failing.found {
            let _ = write!(findings, "<li>world {}: {}</li>", failing.number, escape(&found.to_string()));
        }
    }
    let script = match script.is_empty() {
        true => "<p>Nothing was found.</p>".to_owned(),
        false => format!(
            "<ul>{findings}</ul><h2>The shortest failing script</h2><pre>{}</pre>",
            escape(&script.join("\n"))
        ),
    };
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>interleavings: {verdict}</title>\
         <style>{STYLE}</style>\
         <h1>interleavings: <span class=\"{verdict}\">{verdict}</span></h1><table>{rows}</table>\
         {plots}<h2>Findings</h2>{script}</html>\n"
    )
}

/// A histogram in parts whose bounds double.
fn parts(histogram: &Histogram<u64>) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut from = 0;
    let mut to = 1;
    while from <= histogram.max() && !histogram.is_empty() {
        parts.push((format!("< {to}"), histogram.count_between(from, to - 1)));
        (from, to) = (to, to * 2);
    }
    parts
}
