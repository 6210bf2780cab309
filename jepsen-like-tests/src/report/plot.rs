//! The plots of the page, as SVG.

use std::fmt::Write as _;

use crate::history::Outcome;
use crate::torment::Run;

/// Width of a plot's bucket, µs.
const BUCKET_US: u64 = 200_000;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 24.0;

/// Acknowledged operations a second, and their latency, both over time with the faults as bands.
pub(super) fn plots(run: &Run) -> String {
    let operations = &run.evidence.operations;
    let returns = || {
        operations.iter().filter(|op| op.outcome == Outcome::Ok).filter_map(|op| {
            let returned = op.returned_us?;
            Some((returned, returned - op.invoked_us))
        })
    };
    let end_us = returns().map(|(returned, _)| returned).max().unwrap_or(0);
    let buckets = (end_us / BUCKET_US + 1) as usize;
    let mut latencies: Vec<Vec<u64>> = vec![Vec::new(); buckets];
    for (returned, latency) in returns() {
        latencies[(returned / BUCKET_US) as usize].push(latency);
    }
    let rate: Vec<f64> =
        latencies.iter().map(|bucket| bucket.len() as f64 * 1e6 / BUCKET_US as f64).collect();
    let mut percentile = |percent: usize| -> Vec<f64> {
        latencies
            .iter_mut()
            .map(|bucket| {
                bucket.sort_unstable();
                let at = (bucket.len() * percent).div_ceil(100).max(1) - 1;
                bucket.get(at).map_or(0.0, |us| *us as f64 / 1000.0)
            })
            .collect()
    };
    let (p50, p99) = (percentile(50), percentile(99));
    let rates = plot(run, end_us, &[("#1b6ca8", &rate)], "operations acknowledged a second");
    let latencies = plot(
        run,
        end_us,
        &[("#c1440e", &p99), ("#1b6ca8", &p50)],
        "latency of acknowledged operations, ms: p50 (blue), p99 (orange)",
    );
    format!("{rates}{latencies}")
}

fn plot(run: &Run, end_us: u64, lines: &[(&str, &[f64])], caption: &str) -> String {
    let top = lines.iter().flat_map(|(_, values)| values.iter()).fold(1.0f64, |top, value| top.max(*value));
    let x = |us: u64| LEFT + (WIDTH - LEFT) * us as f64 / end_us.max(1) as f64;
    let y = |value: f64| (HEIGHT - BOTTOM) * (1.0 - value / top);
    let mut svg =
        format!("<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{caption}\">");
    for fault in &run.faults {
        let (from, to) = (x(fault.from_us), x(fault.to_us));
        let word = fault.kind.word();
        let _ = write!(
            svg,
            "<rect x=\"{from:.1}\" y=\"0\" width=\"{:.1}\" height=\"{}\" fill=\"#d62828\" fill-opacity=\"{}\">\
             <title>{word}</title></rect>",
            (to - from).max(1.5),
            HEIGHT - BOTTOM,
            if fault.kind.takes_the_service_away() { 0.25 } else { 0.1 },
        );
    }
    for (colour, values) in lines {
        let points: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(at, value)| format!("{:.1},{:.1}", x(at as u64 * BUCKET_US).min(WIDTH), y(*value)))
            .collect();
        let _ = write!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.3\" points=\"{}\"/>",
            points.join(" ")
        );
    }
    for part in 0..=4u32 {
        let value = top * f64::from(part) / 4.0;
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" font-size=\"11\" text-anchor=\"end\" fill=\"#555\">{value:.0}</text>",
            LEFT - 6.0,
            (y(value) + 4.0).max(10.0),
        );
    }
    let step = (end_us / 8_000_000).max(1);
    let mut second = 0;
    while second * 1_000_000 <= end_us {
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" font-size=\"11\" fill=\"#555\">{second} s</text>",
            x(second * 1_000_000),
            HEIGHT - 6.0,
        );
        second += step;
    }
    let _ = write!(svg, "</svg><figcaption>{caption}; red bands are faults</figcaption></figure>");
    svg
}
