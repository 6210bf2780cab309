//! Every limit of storage has its name here, with the arithmetic behind it.

/// A log segment ends with the frame that reaches this size: small enough that purging frees disk space soon,
/// large enough that the two syncs of a rotation vanish among a few thousand group syncs.
pub const LOG_SEGMENT_BYTES: u64 = 64 << 20;

/// Appended entries kept in memory for readers: 256 entries of the largest size (256 KiB), or some 200 000 of 300 bytes.
pub const LOG_CACHE_BYTES: usize = 64 << 20;

/// Bytes appended but not yet synced before the log gives up. A healthy proposer has at most 4 × 256 KiB under way;
/// a disk this far behind will not catch up, and memory is not a queue.
pub const LOG_UNSYNCED_BYTES_MAX: usize = 1 << 30;

/// A frame is closed when its payload reaches this size: one read from an old segment stays cheap.
pub const LOG_FRAME_PAYLOAD_BYTES: usize = 1 << 20;

/// Largest payload of one entry: far above the proposer's 256 KiB, and a frame's 32-bit length holds it with its frame.
pub const LOG_ENTRY_PAYLOAD_BYTES_MAX: usize = 256 << 20;

/// Largest segment file that is read at all: frames are located by 32-bit offsets.
pub const LOG_SEGMENT_FILE_BYTES_MAX: u64 = u32::MAX as u64;

/// A block of a snapshot ends with the record that reaches this size: what is checked, and may be damaged, as a whole.
pub const SNAPSHOT_BLOCK_BYTES: usize = 256 << 10;

/// Largest record of a snapshot. The largest real one is a plan document of 1 MiB.
pub const SNAPSHOT_RECORD_BYTES_MAX: usize = 16 << 20;

/// Largest opaque membership in a snapshot's header: hundreds of members with long addresses.
pub const SNAPSHOT_MEMBERSHIP_BYTES_MAX: usize = 1 << 20;

/// Snapshots kept. The newest is needed; the one before it is what an operator has when that one is damaged.
pub const SNAPSHOTS_KEPT: usize = 2;

/// Longest cluster id in an identity file.
pub const IDENTITY_CLUSTER_BYTES_MAX: usize = 255;

const _: () = assert!(
    LOG_SEGMENT_BYTES as usize + LOG_ENTRY_PAYLOAD_BYTES_MAX + LOG_FRAME_PAYLOAD_BYTES < u32::MAX as usize
);

/// Largest record of the history index when it is read back. Receipts have at most 32 legs and take some 2 KiB.
pub const HISTORY_RECORD_BYTES_MAX: usize = 64 << 10;

/// Page cache of the history index.
pub const HISTORY_CACHE_BYTES: u64 = 32 << 20;

/// Keys and values that the history index keeps, unless configured otherwise. Files take two to six times as much,
/// and do not shrink.
pub const HISTORY_BYTES_MAX: u64 = 1 << 30;

/// Old records removed with each batch at most, beyond as many as the batch adds, so that a batch's cost is bounded.
pub const HISTORY_REMOVALS_PER_BATCH: usize = 256;

/// Most records in one answer of the history index.
pub const HISTORY_PAGE_RECORDS_MAX: usize = 1_000;

/// Records that wait for the history index: some 40 MiB of receipts, 40 seconds of its pace.
pub const HISTORY_QUEUE_RECORDS_MAX: usize = 40_960;

/// Records that the history index takes in a second: at some 30 µs of CPU for each, 3 % of a core.
pub const HISTORY_RECORDS_PER_SECOND_MAX: u32 = 1_000;

/// Records that the history index takes from the book when it has lost something: two to four seconds of sled's CPU.
/// If the book remembers more, the newest.
pub const HISTORY_RETAINED_RECORDS_MAX: usize = 65_536;

/// Records of one part of those: readers of the index wait for one at most.
pub const HISTORY_RETAINED_PART_RECORDS: usize = 512;

/// The history index asks the book no more often than this: under a load that it cannot follow it loses something all
/// the time, and asking costs as much CPU as a minute of its pace.
pub const HISTORY_RETAINED_INTERVAL: std::time::Duration = std::time::Duration::from_secs(120);

const _: () = assert!(HISTORY_RETAINED_RECORDS_MAX < 1 << 31);
