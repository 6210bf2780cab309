//! Until when a call's work may still be begun: `grpc-timeout`, or the node's own bound.

use std::time::Duration;

use holdfast_proto::FieldError;
use openraft_rt::Instant as _;
use openraft_rt_tokio::TokioInstant;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;

use crate::limits::{DEADLINE_HEAD_START_MAX, DEADLINE_MAX};

/// The header that carries the caller's time.
const HEADER: &str = "grpc-timeout";

/// The deadline of a call: what its caller set, at most [`DEADLINE_MAX`] away, or `default`.
///
/// A caller's deadline is brought forward a little: the gRPC library ends the call at the deadline itself
/// with a bare status, and our answer, which says whether anything was done, should be there before it.
///
/// # Errors
/// The header is not a `grpc-timeout`.
pub(super) fn of_call(metadata: &MetadataMap, default: Duration) -> Result<Instant, FieldError> {
    let Some(value) = metadata.get(HEADER) else { return Ok(Instant::now() + default.min(DEADLINE_MAX)) };
    let text = value.to_str().unwrap_or_default();
    let Some(given) = parse(text) else {
        return Err(FieldError::new(
            HEADER,
            format!("is {text:?}; must be up to 8 digits and one of H M S m u n"),
        ));
    };
    let given = given.min(DEADLINE_MAX);
    let head_start = (given / 10).min(DEADLINE_HEAD_START_MAX);
    Ok(Instant::now() + (given - head_start))
}

/// The deadline of one command of a stream: `left_ms` from now, or `default` for 0, and not after the stream's.
pub(super) fn of_command(now: Instant, left_ms: u64, default: Duration, stream: Option<Instant>) -> Instant {
    let left = if left_ms == 0 { default } else { Duration::from_millis(left_ms) };
    let at = now + left.min(DEADLINE_MAX);
    stream.map_or(at, |stream| at.min(stream))
}

/// The same instant as Raft's runtime has it.
pub(crate) fn on_raft(at: Instant) -> TokioInstant {
    TokioInstant::now() + at.saturating_duration_since(Instant::now())
}

fn parse(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        'H' => Some(Duration::from_secs(count.checked_mul(3600)?)),
        'M' => Some(Duration::from_secs(count.checked_mul(60)?)),
        'S' => Some(Duration::from_secs(count)),
        'm' => Some(Duration::from_millis(count)),
        'u' => Some(Duration::from_micros(count)),
        'n' => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn metadata(value: &'static str) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        metadata.insert(HEADER, value.parse().unwrap());
        metadata
    }

    #[test]
    fn every_unit_is_read_and_anything_else_refused() {
        for (text, ms) in [("1H", 3_600_000), ("2M", 120_000), ("3S", 3_000), ("20m", 20), ("4000u", 4)] {
            assert_eq!(parse(text), Some(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(parse("7n"), Some(Duration::from_nanos(7)));
        for text in ["", "m", "1", "-1m", "123456789m", "1x", "1 m", "１m"] {
            assert_eq!(parse(text), None, "{text:?} was taken");
            if text.is_ascii() {
                let mut wrong = MetadataMap::new();
                wrong.insert(HEADER, text.parse().unwrap());
                assert_eq!(of_call(&wrong, Duration::ZERO).unwrap_err().field, HEADER);
            }
        }
    }

    #[test]
    fn our_answer_comes_before_the_librarys() {
        let now = Instant::now();
        let at = of_call(&metadata("20m"), Duration::from_secs(5)).unwrap();
        assert!(
            at < now + Duration::from_millis(20) && at > now + Duration::from_millis(10),
            "{:?}",
            at - now
        );
        let unset = of_call(&MetadataMap::new(), Duration::from_secs(5)).unwrap();
        assert!(unset >= now + Duration::from_secs(5));
        let long = of_call(&metadata("99999999H"), Duration::ZERO).unwrap();
        assert!(long <= Instant::now() + DEADLINE_MAX);
    }

    #[test]
    fn a_command_has_its_own_time_within_the_streams() {
        let now = Instant::now();
        let ms = Duration::from_millis;
        assert_eq!(of_command(now, 0, ms(50), None), now + ms(50));
        assert_eq!(of_command(now, 20, ms(50), None), now + ms(20));
        assert_eq!(of_command(now, 20, ms(50), Some(now + ms(5))), now + ms(5));
        assert_eq!(of_command(now, u64::MAX, ms(50), None), now + DEADLINE_MAX);
    }
}
