//! The fixed hashes of the derived indexes. The same on every machine; nothing is ever iterated in their order.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::ids::ReservationId;

/// Odd constants from the digits of pi, so that nobody has to wonder where they come from.
const LOW: u64 = 0x243f_6a88_85a3_08d3;
const HIGH: u64 = 0x1319_8a2e_0370_7345;

/// The hash of a reservation id: one folded multiplication, since half of the id is random already.
pub(crate) fn hash_id(id: ReservationId) -> u64 {
    let product = u128::from(id.0 as u64 ^ LOW) * u128::from((id.0 >> 64) as u64 ^ HIGH);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of a row's place.
pub(crate) fn hash_pair(a: u32, b: u32) -> u64 {
    let product = u128::from((u64::from(a) << 32 | u64::from(b)) ^ LOW) * u128::from(HIGH);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of a list of names, absent ones told from empty ones by their place in the seed.
pub(crate) fn hash_names(names: &[Option<&str>]) -> u64 {
    names.iter().fold(LOW, |seed, name| match name {
        Some(name) => xxh3_64_with_seed(name.as_bytes(), seed),
        None => seed.rotate_left(17).wrapping_mul(HIGH),
    })
}
