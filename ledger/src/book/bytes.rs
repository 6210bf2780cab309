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

    /// Numbers of which most are 0: only the others are written, after a mask that says which.
    pub(crate) fn put_sparse<const N: usize>(&mut self, values: [u128; N]) {
        const { assert!(N <= u16::BITS as usize) };
        let mask =
            values.iter().enumerate().fold(0, |mask, (bit, value)| mask | u16::from(*value != 0) << bit);
        self.0.extend_from_slice(&mask.to_le_bytes());
        for value in values.into_iter().filter(|value| *value != 0) {
            self.put_u128(value);
        }
    }

    pub(crate) fn put_option(&mut self, value: Option<u64>) {
        self.put_u8(u8::from(value.is_some()));
        self.put_u64(value.unwrap_or(0));
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
