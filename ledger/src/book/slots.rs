//! Which slots of a table are free: always the smallest free one is given out, so that the slot of a row
//! follows from the set of rows, and a restored book gives out the same slots as the one it was made of.

/// Slots per word of the bottom level.
const WORD_BITS: usize = 64;

/// A two-level bitmap of free slots below the high-water mark.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreeSlots {
    /// Bit s: slot s is free.
    free: Vec<u64>,
    /// Bit w: word w of `free` is not 0.
    words: Vec<u64>,
    /// Slots from here on were never given out.
    high: usize,
}

impl FreeSlots {
    /// Takes the smallest free slot.
    pub(crate) fn take(&mut self) -> usize {
        if let Some(index) = self.words.iter().position(|word| *word != 0) {
            let word = index * WORD_BITS + self.words[index].trailing_zeros() as usize;
            let slot = word * WORD_BITS + self.free[word].trailing_zeros() as usize;
            self.clear(slot);
            return slot;
        }
        let slot = self.high;
        self.grow(slot + 1);
        slot
    }

    /// Takes one slot, when a book is restored. The slots below it that were never given out become free.
    pub(crate) fn take_at(&mut self, slot: usize) {
        if slot >= self.high {
            let first = self.high;
            self.grow(slot + 1);
            for free in first..slot {
                self.give_back(free);
            }
        } else {
            self.clear(slot);
        }
    }

    /// Gives a slot back.
    pub(crate) fn give_back(&mut self, slot: usize) {
        let word = slot / WORD_BITS;
        self.free[word] |= 1 << (slot % WORD_BITS);
        self.words[word / WORD_BITS] |= 1 << (word % WORD_BITS);
    }

    fn clear(&mut self, slot: usize) {
        let word = slot / WORD_BITS;
        self.free[word] &= !(1 << (slot % WORD_BITS));
        if self.free[word] == 0 {
            self.words[word / WORD_BITS] &= !(1 << (word % WORD_BITS));
        }
    }

    fn grow(&mut self, high: usize) {
        self.high = high;
        self.free.resize(high.div_ceil(WORD_BITS).max(self.free.len()), 0);
        self.words.resize(self.free.len().div_ceil(WORD_BITS).max(self.words.len()), 0);
    }
}
