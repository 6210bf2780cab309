//! One seed a run; every part of it draws from a stream of its own, so that a change in one part
//! does not move the draws of another.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The stream of `part` (and of its number, where there are several) under `seed`.
pub fn stream(seed: u64, part: &str, number: u64) -> ChaCha8Rng {
    let mut key = [0u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&number.to_le_bytes());
    for (at, byte) in part.bytes().enumerate() {
        key[16 + at % 16] ^= byte.rotate_left((at / 16) as u32);
    }
    ChaCha8Rng::from_seed(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, part, number| stream(seed, part, number).random::<u64>();
        assert_eq!(draw(1, "faults", 0), draw(1, "faults", 0));
        assert_ne!(draw(1, "faults", 0), draw(2, "faults", 0));
        assert_ne!(draw(1, "faults", 0), draw(1, "clients", 0));
        assert_ne!(draw(1, "clients", 0), draw(1, "clients", 1));
    }
}
