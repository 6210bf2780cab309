//! What an error's word promises, for the checkers. The words and their meaning are the product's
//! own table; a word that is not in it is a finding.

use holdfast_proto::ErrorReason;

/// The word that the clients of a run write for a call that they gave up on, or whose connection
/// broke: an error that the cluster did not make.
pub const LOST: &str = "LOST";

/// What a word promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The call had no effect and never will have one.
    None,
    /// Nobody can say.
    Unknown,
}

/// What the word promises; `None` if it is in no table.
pub fn effect_of(word: &str) -> Option<Effect> {
    if word == LOST {
        return Some(Effect::Unknown);
    }
    let reason: ErrorReason = word.parse().ok()?;
    Some(if reason.has_no_side_effects() { Effect::None } else { Effect::Unknown })
}
