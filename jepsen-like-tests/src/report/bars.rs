//! A bar chart, as SVG.

use std::fmt::Write as _;

use super::escape;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 220.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 18.0;

/// Bars with their words below and their counts above; on a scale of roots, so that small ones are seen.
pub(super) fn bars(bars: &[(String, u64)], caption: &str) -> String {
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1) as f64;
    let step = WIDTH / bars.len().max(1) as f64;
    let caption = escape(caption);
    let mut svg =
        format!("<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{caption}\">");
    for (place, (word, count)) in bars.iter().enumerate() {
        let height = (HEIGHT - BOTTOM - TOP) * (*count as f64 / most).sqrt();
        let (x, y) = (step * place as f64, HEIGHT - BOTTOM - height);
        let (middle, word) = (x + step / 2.0, escape(word));
        let _ = write!(
            svg,
            "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"#1b6ca8\">\
             <title>{word}: {count}</title></rect>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" font-size=\"11\" text-anchor=\"middle\" fill=\"#333\">{count}</text>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" font-size=\"11\" text-anchor=\"middle\" fill=\"#555\">{word}</text>",
            x + 2.0,
            (step - 4.0).max(1.0),
            y - 4.0,
            HEIGHT - BOTTOM + 16.0,
        );
    }
    let _ = write!(svg, "</svg><figcaption>{caption}</figcaption></figure>");
    svg
}
