//! What `log_level` may say.

/// What is wrong with a filter of the log, if something is.
///
/// The filter's own parser takes any word for a module whose every event is wanted: a misspelt level would make
/// a node silent. Filters by span are left to it.
pub(super) fn problem(filter: &str) -> Option<String> {
    if filter.trim().is_empty() {
        return Some("must not be empty; info is usual".to_owned());
    }
    if filter.contains(['[', '{']) {
        return None;
    }
    let wrong = |directive: &str| {
        let directive = directive.trim();
        match directive.rsplit_once('=') {
            _ if directive.is_empty() => None,
            None => (!is_level(directive)).then(|| {
                format!(
                    "has {directive:?}; that is no level ({LEVELS}), and a module is written {directive}=info"
                )
            }),
            Some((_, level)) if !is_level(level.trim()) => {
                Some(format!("has {directive:?}; {level:?} is no level ({LEVELS})"))
            }
            Some((module, _)) => (!module.trim().chars().all(is_of_module)).then(|| {
                format!("has {directive:?}; {module:?} is no module (directives stand between commas)")
            }),
        }
    };
    filter.split(',').find_map(wrong)
}

const LEVELS: &str = "off, error, warn, info, debug, trace";

fn is_level(word: &str) -> bool {
    LEVELS.split(", ").any(|level| level.eq_ignore_ascii_case(word))
}

fn is_of_module(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_refused_wherever_it_stands() {
        for good in [
            "info",
            "WARN",
            "off",
            "info,openraft=warn",
            "openraft=off",
            "warn, holdfast_node::raft=trace",
            "info,",
        ] {
            assert_eq!(problem(good), None, "{good:?}");
        }
        for bad in ["", " ", "loud", "info,loud", "openraft=loud", "openraft=", "info;openraft=warn", "3"] {
            assert!(problem(bad).is_some(), "{bad:?} was taken");
        }
    }
}
