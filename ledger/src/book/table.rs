//! Tables of rows in segments: a snapshot shares the segments, and the first write to one while it is shared
//! copies it. Each table keeps the sum of its rows' hashes.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::book::bytes::RowBytes;
use crate::book::slots::FreeSlots;

/// Rows of a segment: what one write copies at most after a snapshot was begun (about 100 KiB of accounts).
const SEGMENT_ROWS: usize = 128;

/// A row that can be hashed.
pub(crate) trait Row: Clone {
    /// Tells rows of different tables apart in the digest.
    const TAG: u8;

    /// Writes the fields that never change while the row stands. They are hashed once.
    fn write_fixed(&self, out: &mut RowBytes);

    /// Writes every other stored field. Two rows write the same bytes, fixed and not, only if they are equal.
    fn write(&self, out: &mut RowBytes);
}

#[derive(Clone, Debug)]
struct Slot<R> {
    row: R,
    /// The hash that the table's sum contains for this row; 0: not hashed yet.
    hash: u128,
    /// The hash of the fields that never change; part of what `hash` is over.
    fixed: u128,
    dirty: bool,
}

#[derive(Clone, Debug)]
struct Rows<R> {
    slots: Vec<Option<Slot<R>>>,
    used: usize,
}

impl<R> Default for Rows<R> {
    fn default() -> Self {
        Rows { slots: Vec::new(), used: 0 }
    }
}

/// The table's own until a snapshot is begun, so that a write costs no atomic operation; then shared with it.
#[derive(Debug)]
enum Segment<R> {
    Own(Rows<R>),
    Shared(Arc<Rows<R>>),
}

impl<R: Row> Segment<R> {
    fn rows(&self) -> &Rows<R> {
        match self {
            Segment::Own(rows) => rows,
            Segment::Shared(rows) => rows,
        }
    }

    /// The rows for writing.
    #[inline]
    fn rows_mut(&mut self) -> &mut Rows<R> {
        if let Segment::Shared(_) = self {
            self.take_back();
        }
        match self {
            Segment::Own(rows) => rows,
            Segment::Shared(_) => unreachable!("it was taken back"),
        }
    }

    /// Copies the rows only if a snapshot still has them.
    #[cold]
    fn take_back(&mut self) {
        if let Segment::Shared(shared) = self {
            *self = Segment::Own(Arc::unwrap_or_clone(std::mem::take(shared)));
        }
    }

    /// The rows for a snapshot. Moves a `Vec`, not what is in it.
    fn share(&mut self) -> Arc<Rows<R>> {
        if let Segment::Own(rows) = self {
            *self = Segment::Shared(Arc::new(std::mem::take(rows)));
        }
        match self {
            Segment::Shared(rows) => Arc::clone(rows),
            Segment::Own(_) => unreachable!("it was shared"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Table<R> {
    segments: Vec<Segment<R>>,
    free: FreeSlots,
    len: usize,
    sum: u128,
    dirty: Vec<u32>,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Table { segments: Vec::new(), free: FreeSlots::default(), len: 0, sum: 0, dirty: Vec::new() }
    }
}

impl<R: Row> Table<R> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The sum of the rows' hashes, as of the last [`Table::hash_dirty`].
    pub(crate) fn sum(&self) -> u128 {
        self.sum
    }

    pub(crate) fn find(&self, slot: u32) -> Option<&R> {
        let (segment, place) = split(slot);
        Some(&self.segments.get(segment)?.rows().slots.get(place)?.as_ref()?.row)
    }

    /// The row in a slot that is known to be taken.
    pub(crate) fn get(&self, slot: u32) -> &R {
        match self.find(slot) {
            Some(row) => row,
            None => panic!("slot {slot} is vacant"),
        }
    }

    /// The row for writing: it will be hashed again.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut R {
        let (segment, place) = split(slot);
        let entry = self.segments[segment].rows_mut().slots[place].as_mut();
        match entry {
            Some(entry) => {
                if !entry.dirty {
                    entry.dirty = true;
                    self.dirty.push(slot);
                }
                &mut entry.row
            }
            None => panic!("slot {slot} is vacant"),
        }
    }

    /// Puts a row into the smallest free slot.
    pub(crate) fn insert(&mut self, row: R) -> u32 {
        let slot = self.free.take() as u32;
        self.put(slot, row);
        slot
    }

    /// Puts a row into a given slot, when a book is restored. False: it is taken.
    pub(crate) fn insert_at(&mut self, slot: u32, row: R) -> bool {
        if self.find(slot).is_some() {
            return false;
        }
        self.free.take_at(slot as usize);
        self.put(slot, row);
        true
    }

    fn put(&mut self, slot: u32, row: R) {
        let (segment, place) = split(slot);
        while self.segments.len() <= segment {
            self.segments.push(Segment::Own(Rows::default()));
        }
        let rows = self.segments[segment].rows_mut();
        if rows.slots.is_empty() {
            rows.slots.reserve_exact(SEGMENT_ROWS);
        }
        if rows.slots.len() <= place {
            rows.slots.resize_with(place + 1, || None);
        }
        rows.slots[place] = Some(Slot { row, hash: 0, fixed: 0, dirty: true });
        rows.used += 1;
        self.len += 1;
        self.dirty.push(slot);
    }

    pub(crate) fn remove(&mut self, slot: u32) -> R {
        let (index, place) = split(slot);
        let rows = self.segments[index].rows_mut();
        let Some(entry) = rows.slots[place].take() else { panic!("slot {slot} is vacant") };
        rows.used -= 1;
        if rows.used == 0 {
            // An empty segment gives its memory back.
            rows.slots = Vec::new();
        }
        self.sum = self.sum.wrapping_sub(entry.hash);
        self.len -= 1;
        self.free.give_back(slot as usize);
        entry.row
    }

    /// Brings the sum up to date with every row written since the last call.
    pub(crate) fn hash_dirty(&mut self, bytes: &mut RowBytes) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for slot in dirty.drain(..) {
            let (segment, place) = split(slot);
            let Some(entry) = self.segments[segment].rows_mut().slots.get_mut(place) else { continue };
            let Some(entry) = entry.as_mut().filter(|entry| entry.dirty) else { continue };
            if entry.hash == 0 {
                entry.fixed = hash_fixed(slot, &entry.row, bytes);
            }
            let hash = hash_row(entry.fixed, &entry.row, bytes);
            self.sum = self.sum.wrapping_sub(entry.hash).wrapping_add(hash);
            entry.hash = hash;
            entry.dirty = false;
        }
        self.dirty = dirty;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &R)> {
        iter_rows(self.segments.iter().map(Segment::rows))
    }

    pub(crate) fn snapshot(&mut self) -> TableSnapshot<R> {
        TableSnapshot { segments: self.segments.iter_mut().map(Segment::share).collect() }
    }

    pub(crate) fn all(&self) -> AllRows<'_, R> {
        AllRows { segments: self.segments.iter().map(Segment::rows).collect() }
    }

    /// One more than the largest slot that may be taken.
    pub(crate) fn slots(&self) -> u32 {
        (self.segments.len() * SEGMENT_ROWS) as u32
    }
}

/// The rows of a table at one moment.
#[derive(Clone, Debug)]
pub(crate) struct TableSnapshot<R> {
    segments: Vec<Arc<Rows<R>>>,
}

impl<R: Row> TableSnapshot<R> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &R)> {
        iter_rows(self.segments.iter().map(Arc::as_ref))
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.used).sum()
    }

    pub(crate) fn all(&self) -> AllRows<'_, R> {
        AllRows { segments: self.segments.iter().map(Arc::as_ref).collect() }
    }
}

/// The rows of a table or of its snapshot, for whoever goes over all of them.
pub(crate) struct AllRows<'a, R> {
    segments: Vec<&'a Rows<R>>,
}

impl<R: Row> AllRows<'_, R> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &R)> {
        iter_rows(self.segments.iter().copied())
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.used).sum()
    }

    /// The sum computed from all rows, for audits.
    pub(crate) fn sum_in_full(&self) -> u128 {
        let mut bytes = RowBytes::default();
        self.iter().fold(0, |sum, (slot, row)| {
            let fixed = hash_fixed(slot, row, &mut bytes);
            u128::wrapping_add(sum, hash_row(fixed, row, &mut bytes))
        })
    }
}

fn split(slot: u32) -> (usize, usize) {
    (slot as usize / SEGMENT_ROWS, slot as usize % SEGMENT_ROWS)
}

fn hash_fixed<R: Row>(slot: u32, row: &R, bytes: &mut RowBytes) -> u128 {
    bytes.clear();
    bytes.put_u8(R::TAG);
    bytes.put_u32(slot);
    row.write_fixed(bytes);
    xxh3_128(bytes.as_slice())
}

fn hash_row<R: Row>(fixed: u128, row: &R, bytes: &mut RowBytes) -> u128 {
    bytes.clear();
    bytes.put_u128(fixed);
    row.write(bytes);
    xxh3_128(bytes.as_slice())
}

fn iter_rows<'a, R: 'a>(segments: impl Iterator<Item = &'a Rows<R>>) -> impl Iterator<Item = (u32, &'a R)> {
    segments.enumerate().flat_map(|(index, rows)| {
        rows.slots.iter().enumerate().filter_map(move |(place, entry)| {
            entry.as_ref().map(|entry| ((index * SEGMENT_ROWS + place) as u32, &entry.row))
        })
    })
}
