//! What a route tells the gateways: `degrade` and `on_unavailable`.

use super::matching::check_pattern;
use super::reader::{Place, Problems, shorten};
use super::scalars::{read_name, read_whole, read_word};
use crate::limits::{REWRITE_FIELDS_MAX, REWRITE_MODELS_MAX};
use crate::plan::{Degrade, OnUnavailable, Rewrite};

/// Fields that a request is nothing without, or that say what it costs.
const NEVER_LEFT_OUT: [&str; 7] =
    ["model", "messages", "input", "prompt", "stream", "stream_options", "max_tokens"];

/// Reads `{light: rewrite, heavy: rewrite}`. Whatever `light` does and `heavy` says nothing of, both do.
pub(super) fn read_degrade(place: &Place<'_>, problems: &mut Problems) -> Degrade {
    let fields = place.fields(problems, &["light", "heavy"]);
    let light = fields.get("light").map(|place| read_rewrite(place, problems, &Rewrite::default()));
    let light = light.unwrap_or_default();
    let heavy = fields.get("heavy").map(|place| read_rewrite(place, problems, &light));
    Degrade { heavy: heavy.unwrap_or_else(|| light.clone()), light }
}

fn read_rewrite(place: &Place<'_>, problems: &mut Problems, base: &Rewrite) -> Rewrite {
    let fields = place.fields(problems, &["model", "max_tokens", "without"]);
    let mut rewrite = base.clone();
    if let Some(place) = fields.get("model") {
        rewrite.models.clear();
        let entries = place.entries(problems, "a mapping from models to those that take their place");
        if entries.len() > REWRITE_MODELS_MAX {
            let count = entries.len();
            place
                .complain(problems, format!("has {count} models; at most {REWRITE_MODELS_MAX} are possible"));
            return rewrite;
        }
        for (entry, place) in entries {
            if let Err(problem) = check_pattern(&entry.key) {
                problems.add(entry.line, place.path, problem);
            } else if let Some(model) = read_name(&place, problems, "a model") {
                rewrite.models.push((entry.key.clone(), model));
            }
        }
    }
    if let Some(place) = fields.get("max_tokens") {
        rewrite.max_tokens = read_whole(place, problems, 1, u64::from(u32::MAX));
    }
    if let Some(place) = fields.get("without") {
        let items = place.items();
        if items.len() > REWRITE_FIELDS_MAX {
            let count = items.len();
            place
                .complain(problems, format!("has {count} fields; at most {REWRITE_FIELDS_MAX} are possible"));
            return rewrite;
        }
        rewrite.without = items.iter().filter_map(|item| read_field(item, problems)).collect();
    }
    rewrite
}

fn read_field(place: &Place<'_>, problems: &mut Problems) -> Option<String> {
    let (text, _) = place.scalar(problems, "a field of the request such as tools")?;
    let shown = shorten(text);
    if NEVER_LEFT_OUT.contains(&text) {
        place.complain(problems, format!("is {shown:?}, which a request cannot do without"));
        return None;
    }
    if text.is_empty()
        || text.len() > 64
        || !text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    {
        place.complain(problems, format!("is {shown:?}; a field is 1 to 64 of a-z and _"));
        return None;
    }
    Some(text.to_owned())
}

/// Reads `closed`, `shard` or `open`.
pub(super) fn read_on_unavailable(place: &Place<'_>, problems: &mut Problems) -> Option<OnUnavailable> {
    let all = [OnUnavailable::Closed, OnUnavailable::Shard, OnUnavailable::Open];
    let word = read_word(place, problems, &all.map(OnUnavailable::as_str))?;
    all.into_iter().find(|choice| choice.as_str() == word)
}
