//! "Did you mean": the nearest of the words that would have been right.

/// Longest word that is compared, so that a hostile key costs nothing.
const WORD_CHARS_MAX: usize = 64;

/// `; did you mean "x"?` for the nearest word, or nothing if none is near.
pub(super) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let chars = word.chars().count();
    if chars > WORD_CHARS_MAX {
        return String::new();
    }
    let near = known
        .into_iter()
        .map(|candidate| (edit_distance(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.chars().count().max(chars) / 3)
        .min();
    match near {
        Some((_, candidate)) => format!("; did you mean {candidate:?}?"),
        None => String::new(),
    }
}

/// Insertions, deletions, replacements and swaps of neighbours from one word to the other.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    let mut from_before = '\0';
    for (i, from_char) in from.chars().enumerate() {
        let mut next = vec![i + 1];
        for (j, to_char) in to.iter().enumerate() {
            let replaced = last[j] + usize::from(from_char != *to_char);
            let mut best = replaced.min(last[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && from_char == to[j - 1] && from_before == *to_char {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut last, next);
        from_before = from_char;
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_offered_and_a_strange_one_is_not() {
        let known = ["routes", "limits", "tenants"];
        assert_eq!(did_you_mean("tenents", known), "; did you mean \"tenants\"?");
        assert_eq!(did_you_mean("limtis", known), "; did you mean \"limits\"?");
        assert_eq!(did_you_mean("Routes", known), "; did you mean \"routes\"?");
        assert_eq!(did_you_mean("xyzzy", known), "");
        assert_eq!(did_you_mean(&"l".repeat(100_000), known), "");
    }
}
