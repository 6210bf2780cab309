//! The `match` of routes and limits.

use super::reader::{Place, Problems, shorten};
use crate::limits::{NAME_BYTES_MAX, PATTERNS_PER_MATCH_MAX};
use crate::plan::Match;

/// Reads `{route: …, model: …, region: …}`; each a pattern or a list of them.
pub(super) fn read_match(place: &Place<'_>, problems: &mut Problems) -> Match {
    let fields = place.fields(problems, &["route", "model", "region"]);
    let mut part = |key| fields.get(key).map(|place| read_patterns(place, problems)).unwrap_or_default();
    Match { route: part("route"), model: part("model"), region: part("region") }
}

fn read_patterns(place: &Place<'_>, problems: &mut Problems) -> Vec<String> {
    let items = place.items();
    if place.is_list() && items.is_empty() {
        place.complain(
            problems,
            "is an empty list, which nothing would match; leave the part out to match everything",
        );
    }
    if items.len() > PATTERNS_PER_MATCH_MAX {
        place.complain(
            problems,
            format!("has {} patterns; at most {PATTERNS_PER_MATCH_MAX} are possible", items.len()),
        );
        return Vec::new();
    }
    items.iter().filter_map(|item| read_pattern(item, problems)).collect()
}

fn read_pattern(place: &Place<'_>, problems: &mut Problems) -> Option<String> {
    let (text, _) = place.scalar(problems, "a pattern such as chat.* or a list of them")?;
    match check_pattern(text) {
        Ok(()) => Some(text.to_owned()),
        Err(problem) => {
            place.complain(problems, problem);
            None
        }
    }
}

/// What is wrong with a pattern.
pub(super) fn check_pattern(text: &str) -> Result<(), String> {
    let fixed = text.strip_suffix('*').unwrap_or(text);
    if let Some(odd) = fixed.chars().find(|c| !(c.is_ascii_alphanumeric() || "._:@/+-".contains(*c))) {
        let rule = "a pattern is a name, or the beginning of one and * at the end";
        return Err(format!("is {:?} with {odd:?}; {rule}", shorten(text)));
    }
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        return Err(format!("is {} bytes long; 1 to {NAME_BYTES_MAX} are possible", text.len()));
    }
    Ok(())
}
