//! 128-bit numbers. 0 is left out.

use crate::v1;

pub(super) fn wide(number: u128) -> Option<v1::Wide> {
    (number != 0).then_some(v1::Wide { low: number as u64, high: (number >> 64) as u64 })
}

pub(super) fn number(wire: Option<v1::Wide>) -> u128 {
    wire.map_or(0, |v1::Wide { low, high }| u128::from(high) << 64 | u128::from(low))
}

pub(super) fn signed_wide(number: i128) -> Option<v1::SignedWide> {
    let zigzag = (number << 1 ^ number >> 127) as u128;
    (zigzag != 0).then_some(v1::SignedWide { low: zigzag as u64, high: (zigzag >> 64) as u64 })
}

pub(super) fn signed_number(wire: Option<v1::SignedWide>) -> i128 {
    wire.map_or(0, |v1::SignedWide { low, high }| {
        let zigzag = u128::from(high) << 64 | u128::from(low);
        (zigzag >> 1) as i128 ^ -((zigzag & 1) as i128)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_come_back() {
        for edge in [0, 1, u128::from(u64::MAX), 1 << 64, u128::MAX] {
            assert_eq!(number(wide(edge)), edge);
        }
        for edge in [0, 1, -1, i128::from(i64::MIN), i128::MAX, i128::MIN] {
            assert_eq!(signed_number(signed_wide(edge)), edge);
        }
        assert_eq!(signed_wide(-1), Some(v1::SignedWide { low: 1, high: 0 }));
    }
}
