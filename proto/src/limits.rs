//! Every limit of the wire has its name here.

/// Most commands in one message of the batched stream: as many as fit one log entry.
pub const BATCH_COMMANDS_MAX: usize = 1_024;

/// Largest message that either side of a client connection accepts. A full batch of the largest
/// reserves (seven names of 128 bytes, amounts, digest: under 1.2 KiB each) is 1.2 MiB, a plan
/// document with its envelope 1 MiB; the rest is room.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Longest reason that an operator may give: some sentences.
pub const REASON_BYTES_MAX: usize = 1_024;

/// The pause that is named to callers when a queue or ceiling is full, ms: some tens of log entries.
pub const OVERLOADED_RETRY_MS: u64 = 100;

/// Where the text of a failure stops naming further problems.
pub const MESSAGE_TEXT_BYTES_MAX: usize = 1_024;

/// Text of field problems that a status carries. Statuses travel in headers, base64 in part, and
/// common peers take 16 KiB of those: 8 KiB · 4/3 + the message twice leaves room.
pub const STATUS_PROBLEM_BYTES_MAX: usize = 8 << 10;

const _: () = assert!(STATUS_PROBLEM_BYTES_MAX * 4 / 3 + 4 * MESSAGE_TEXT_BYTES_MAX < 16 << 10);
const _: () = assert!(BATCH_COMMANDS_MAX * 1_200 < MESSAGE_BYTES_MAX);
const _: () = assert!(holdfast_ledger::limits::PLAN_BYTES_MAX < MESSAGE_BYTES_MAX / 2);
