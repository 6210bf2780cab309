//! Single values: enum words, instants, bytes.

pub use holdfast_proto::json::instant;
use holdfast_proto::v1;
use jiff::Timestamp;

/// A number of an enum that this program does not know, from a newer cluster.
const NEWER: &str = "UNKNOWN_TO_THIS_VERSION";

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident: $type:ty, $prefix:literal;)*) => {$(
        $(#[$doc])*
        pub fn $name(number: i32) -> &'static str {
            <$type>::try_from(number).ok().and_then(|value| value.as_str_name().strip_prefix($prefix)).unwrap_or(NEWER)
        }
    )*};
}

mod upper {
    use super::*;
    words! {
        unit: v1::Unit, "UNIT_";
        level: v1::Level, "LEVEL_";
        reason: v1::RejectionReason, "REJECTION_REASON_";
        undecided: v1::ShadowUndecided, "SHADOW_UNDECIDED_";
    }
}

words! {
    /// State of a reservation, for example `RESERVED`.
    state: v1::ReservationState, "RESERVATION_STATE_";
    /// Rung of the ladder, for example `DEGRADED_LIGHT`.
    tier: v1::Tier, "TIER_";
}

/// Unit, for example `tokens`.
pub fn unit(number: i32) -> String {
    upper::unit(number).to_lowercase()
}

/// Level, for example `tenant`.
pub fn level(number: i32) -> String {
    upper::level(number).to_lowercase()
}

/// Why a limit says no, for example `never fits`.
pub fn reason(number: i32) -> String {
    upper::reason(number).to_lowercase().replace('_', " ")
}

/// Why the shadow lane could not decide, for example `reservation_max`.
pub fn undecided(number: i32) -> String {
    upper::undecided(number).to_lowercase()
}

/// Role of a member, for example `leader`.
pub fn role(number: i32) -> String {
    let name = v1::Role::try_from(number).ok().and_then(|role| role.as_str_name().strip_prefix("ROLE_"));
    name.unwrap_or(NEWER).to_lowercase()
}

/// The name of an accounting epoch: its start in UTC to the second, or `continuous`.
pub fn epoch(start_ms: Option<u64>) -> String {
    start_ms.map_or_else(|| "continuous".to_owned(), |ms| instant(ms - ms % 1_000))
}

/// The wall clock, in milliseconds since the Unix epoch.
pub fn at_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default()
}

/// Bytes in hexadecimal digits.
pub fn bytes_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A stretch of time for people: `1.5 s`, `12 min`, `5 h`, `3 d`.
pub fn hours_minutes(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        7_200_000..172_800_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} d", ms / 86_400_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_specification() {
        assert_eq!(state(v1::ReservationState::SettledWithDebt as i32), "SETTLED_WITH_DEBT");
        assert_eq!(tier(v1::Tier::DegradedHeavy as i32), "DEGRADED_HEAVY");
        assert_eq!(unit(v1::Unit::Tokens as i32), "tokens");
        assert_eq!(level(v1::Level::Global as i32), "global");
        assert_eq!(state(99), NEWER);
    }

    #[test]
    fn instants_sort_as_text() {
        assert_eq!(instant(0), "1970-01-01T00:00:00Z");
        assert_eq!(instant(1_796_083_200_000), "2026-12-01T00:00:00Z");
        assert_eq!(instant(1_796_083_200_001), "2026-12-01T00:00:00.001Z");
        assert_eq!(instant(u64::MAX), u64::MAX.to_string());
        assert_eq!(epoch(Some(1_796_083_200_999)), "2026-12-01T00:00:00Z");
        assert_eq!(epoch(None), "continuous");
    }
}
