//! The HTML page of a run of torment: operations over time, faults as bands, what was found; and that of the
//! interleavings. Self-contained.

mod bars;
mod interleavings;
mod plot;

pub use interleavings::html as interleavings_html;

use std::fmt::Write as _;

use crate::torment::Run;

/// How every page looks.
const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222}\
    th{text-align:left;padding-right:1.5em;font-weight:600;vertical-align:top}td,pre{font-family:monospace}\
    pre{font-size:12px;overflow-x:auto}.pass{color:#0a6b2d}.violation,.inconclusive{color:#a4161a}\
    svg{width:100%;height:auto}figcaption{font-size:13px;color:#555}";

/// The page.
pub fn html(run: &Run, command: &str) -> String {
    let summary = &run.summary;
    let verdict = summary.verdict.as_str();
    let mut rows = String::new();
    let mut row = |name: &str, value: String| {
        let _ = write!(rows, "<tr><th>{name}</th><td>{}</td></tr>", escape(&value));
    };
    row("seed", summary.seed.to_string());
    row("operations", summary.operations.to_string());
    row("ended", words(summary.outcomes.iter()));
    row("faults", words(summary.faults.iter()));
    row("rate before the first fault", format!("{} acknowledged/s", run.rate_before));
    let away = summary.unavailable_ms;
    row(
        "unavailable after an outage",
        format!("p50 {} ms, p99 {} ms, max {} ms", away.p50, away.p99, away.max),
    );
    row("reproduce", command.to_owned());
    let findings: String = match summary.findings.is_empty() {
        true => "<p>Nothing was found.</p>".to_owned(),
        false => {
            let item = |finding: &String| format!("<li>{}</li>", escape(finding));
            format!("<ul>{}</ul>", summary.findings.iter().map(item).collect::<String>())
        }
    };
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>torment: {verdict}</title>\
         <style>{STYLE}</style>\
         <h1>torment: <span class=\"{verdict}\">{verdict}</span></h1><table>{rows}</table>\
         <h2>Over time</h2>{plots}<h2>Findings</h2>{findings}</html>\n",
        plots = plot::plots(run),
    )
}

fn words<'a, K: std::fmt::Display + 'a>(counts: impl Iterator<Item = (K, &'a u64)>) -> String {
    counts.map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
