//! Where every choice of a world comes from: a seeded stream, or a tape of earlier choices.

use std::sync::{Arc, Mutex, PoisonError};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::seed;

/// A source of choices that remembers them.
pub struct Choices {
    source: Source,
    taken: Vec<u32>,
    copy: Option<Copied>,
}

/// A copy of what is chosen that outlives a thread that panics.
pub type Copied = Arc<Mutex<Vec<u32>>>;

enum Source {
    Seeded(Box<ChaCha8Rng>),
    /// Past its end every choice is 0, which is always the harmless one.
    Tape(std::vec::IntoIter<u32>),
}

impl Choices {
    /// The choices of world `number` under a seed.
    pub fn seeded(seed: u64, number: u64) -> Self {
        Choices {
            source: Source::Seeded(Box::new(seed::stream(seed, "interleaving", number))),
            taken: Vec::new(),
            copy: None,
        }
    }

    /// The same choices again, or as many of them as are left.
    pub fn replay(tape: Vec<u32>) -> Self {
        Choices { source: Source::Tape(tape.into_iter()), taken: Vec::new(), copy: None }
    }

    /// Copies every choice as it is made.
    #[must_use]
    pub fn copied_to(self, copy: &Copied) -> Self {
        Choices { copy: Some(Arc::clone(copy)), ..self }
    }

    /// A number below `bound`; 0 for a bound of 0 or 1, which is no choice.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound < 2 {
            return 0;
        }
        let drawn = match &mut self.source {
            Source::Seeded(rng) => rng.random_range(0..bound),
            Source::Tape(tape) => tape.next().unwrap_or(0).min(bound - 1),
        };
        self.taken.push(drawn);
        if let Some(copy) = &self.copy {
            copy.lock().unwrap_or_else(PoisonError::into_inner).push(drawn);
        }
        drawn
    }

    /// A place in a list of this length.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(u32::try_from(length).unwrap_or(u32::MAX)) as usize
    }

    /// True in so many of a hundred cases; false if the choice is 0.
    pub fn chance(&mut self, percent: u32) -> bool {
        percent > 0 && self.below(100) >= 100u32.saturating_sub(percent)
    }

    /// A number for a client's pauses.
    pub fn spread(&mut self) -> u64 {
        u64::from(self.below(1 << 10))
    }

    /// What was chosen so far.
    pub fn into_tape(self) -> Vec<u32> {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_repeats_what_was_drawn_and_ends_in_zeros() {
        let draw = |choices: &mut Choices| [choices.below(100), choices.below(7), choices.below(1)];
        let mut seeded = Choices::seeded(3, 9);
        let drawn = draw(&mut seeded);
        let tape = seeded.into_tape();
        assert_eq!(tape.len(), 2, "no choice is not recorded");
        let mut replayed = Choices::replay(tape);
        assert_eq!(draw(&mut replayed), drawn);
        assert_eq!(draw(&mut replayed), [0, 0, 0]);
        assert!(!replayed.chance(99));
    }
}
