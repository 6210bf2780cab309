//! The bytes that rows are hashed by. Never stored: the digest compares books that run, and a restored
//! book is hashed anew, so this layout may change with the rules version.

/// A buffer that rows write themselves into, fixed-size fields first and every text with its length.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowBytes(Vec<u8>);

impl RowBytes {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn put_u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn put_u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn put_u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn put_u128(&mut self, value: u128) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// As many numbers as the type says, in one go.
    pub(crate) fn put_words<const N: usize>(&mut self, words: [u64; N]) {
        self.0.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
    }

    /// Numbers that hardly ever need more than 64 bits: their low halves, then whether the high ones follow.
    pub(crate) fn put_wide<const N: usize>(&mut self, values: [u128; N]) {
        self.put_words(values.map(|value| value as u64));
        let high = values.map(|value| (value >> 64) as u64);
        let follow = high.iter().fold(0, |any, half| any | half) != 0;
        self.put_u8(u8::from(follow));
        if follow {
            self.put_words(high);
        }
    }

    /// Numbers that are nearly always all 0: whether they are, and all of them if not.
    pub(crate) fn put_rare<const N: usize>(&mut self, values: [u128; N]) {
        let any = values.iter().fold(0, |any, value| any | value) != 0;
        self.put_u8(u8::from(any));
        if any {
            values.into_iter().for_each(|value| self.put_u128(value));
        }
    }

    /// Which of the numbers are there, then all of them, 0 where there is none.
    pub(crate) fn put_options<const N: usize>(&mut self, values: [Option<u64>; N]) {
        const { assert!(N <= u8::BITS as usize) };
        self.put_u8(mask(values.map(|value| value.is_some())));
        self.put_words(values.map(Option::unwrap_or_default));
    }

    pub(crate) fn put_option(&mut self, value: Option<u64>) {
        self.put_u8(u8::from(value.is_some()));
        self.put_u64(value.unwrap_or(0));
    }

    /// Bytes whose number is fixed.
    pub(crate) fn put_raw<const N: usize>(&mut self, value: &[u8; N]) {
        self.0.extend_from_slice(value);
    }

    pub(crate) fn put_bytes(&mut self, value: &[u8]) {
        self.put_u32(value.len() as u32);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn put_text(&mut self, value: &str) {
        self.put_bytes(value.as_bytes());
    }

    pub(crate) fn put_optional_text(&mut self, value: Option<&str>) {
        self.put_u8(u8::from(value.is_some()));
        self.put_text(value.unwrap_or(""));
    }
}

/// Two numbers as one.
pub(crate) fn pair(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

fn mask<const N: usize>(bits: [bool; N]) -> u8 {
    bits.into_iter().enumerate().fold(0, |mask, (bit, set)| mask | u8::from(set) << bit)
}
