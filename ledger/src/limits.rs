//! Every limit of the ledger has its name here, with the arithmetic behind it.

/// Longest name or id: long enough for an e-mail address or a path, short enough for an index key.
pub const NAME_BYTES_MAX: usize = 128;

/// Default id window: how far back in time an unknown reservation id may lie (spec §4, freshness).
pub const ID_WINDOW_MS: u64 = 15 * 60 * 1000;

/// How far ahead of the book's clock an unknown id may lie.
pub const ID_AHEAD_MS: u64 = 5_000;

/// How long EXPIRING lasts before the units return.
pub const EXPIRING_GRACE_MS: u64 = 1_000;

/// Most reservations that one entry's timer work ends, so that an entry's cost is bounded.
pub const TIMERS_PER_ENTRY_MAX: usize = 1_024;

/// Most legs of one reservation: 3 levels × 4 units × 2 kinds of limit, with room for route, model and region scopes.
pub const LEGS_MAX: usize = 32;

/// Most limits of one plan.
pub const LIMITS_PER_PLAN_MAX: usize = 256;

/// Most routes of one plan.
pub const ROUTES_PER_PLAN_MAX: usize = 256;

/// Largest plan document.
pub const PLAN_BYTES_MAX: usize = 1 << 20;

/// Open reservations that a book holds before it refuses new ones (it never evicts).
pub const RESERVATIONS_OPEN_MAX: usize = 4_000_000;

/// Reservations, open and remembered, that a book holds before it refuses new ones.
pub const RESERVATIONS_KEPT_MAX: usize = 16_000_000;

/// Accounts that a book holds before it refuses to open new ones.
pub const ACCOUNTS_MAX: usize = 16_000_000;

const _: () = assert!(RESERVATIONS_OPEN_MAX <= RESERVATIONS_KEPT_MAX);
const _: () = assert!(ID_AHEAD_MS < ID_WINDOW_MS);
