//! Every limit of the ledger has its name here, with the arithmetic behind it.

/// Longest name or id: long enough for an e-mail address or a path, short enough for an index key.
pub const NAME_BYTES_MAX: usize = 128;

/// Default id window: how far back in time an unknown reservation id may lie.
pub const ID_WINDOW_MS: u64 = 15 * 60 * 1000;

/// How far ahead of the book's clock an unknown id may lie.
pub const ID_AHEAD_MS: u64 = 5_000;

/// How long EXPIRING lasts before the units return.
pub const EXPIRING_GRACE_MS: u64 = 1_000;

/// Most commands of one log entry.
pub const COMMANDS_PER_ENTRY_MAX: usize = 1_024;

/// Most timers of reservations and of tombstones that one entry's work serves, so that an entry's cost is bounded.
/// A reservation needs two (expiry or usage deadline, then forgetting), so that an entry full of
/// reservations never makes more of them than an entry serves.
pub const TIMERS_PER_ENTRY_MAX: usize = 4 * COMMANDS_PER_ENTRY_MAX;

/// Most lineages that one entry's work looks at for dropping: 8 a command.
pub const DROPS_PER_ENTRY_MAX: usize = 8 * COMMANDS_PER_ENTRY_MAX;

/// Most lineages that one entry's work looks at because time repays their debt or ends a boost: 1 a command.
pub const WAKES_PER_ENTRY_MAX: usize = COMMANDS_PER_ENTRY_MAX;

/// When a lineage that could not be dropped is looked at again, if nothing says when it could be.
pub const DROP_AGAIN_MS: u64 = 24 * 3_600_000;

/// Admission paths that are kept ready. More are looked up anew; the cache starts again when it is full.
pub const PATHS_MAX: usize = 65_536;

/// The cache of paths starts again this often: looking all of them up anew takes milliseconds, and what nobody asks
/// for any more holds some 2 KiB each.
pub const PATHS_AGE_MS_MAX: u64 = ID_WINDOW_MS;

/// Events that the book keeps, however young they are: at 300 bytes each this is 5 MiB, and beginning a snapshot
/// takes as many pointers.
pub const EVENTS_KEPT_MAX: usize = 16_384;

/// How long the book keeps an event if the plan says nothing: a weekend and some days to notice.
pub const EVENTS_KEPT_MS: u64 = 7 * 24 * 3_600_000;

/// Shortest time to keep an event: whoever follows them must get over a change of leader.
pub const EVENTS_KEPT_MS_MIN: u64 = 60_000;

/// Statements of archived accounts that the book keeps: at 400 bytes each this is 6 MiB. The history index has
/// older ones.
pub const STATEMENTS_KEPT_MAX: usize = 16_384;

/// How long the book keeps a statement: a quarter and some days to look at it.
pub const STATEMENTS_KEPT_MS: u64 = 100 * 24 * 3_600_000;

/// Closed accounts of one lineage that a query for statements goes through.
pub const CLOSED_LOOKED_AT_MAX: u32 = 4_096;

/// Adjustments that the book remembers. An operator's tool that sets a quota for each of 10 000 tenants fits
/// six times into the default id window.
pub const ADJUSTMENTS_KEPT_MAX: usize = 65_536;

/// Boosts that run on one lineage at a time.
pub const BOOSTS_PER_LINEAGE_MAX: usize = 16;

/// Longest boost: as long as any duration of a plan.
pub const BOOST_MS_MAX: u64 = DURATION_MS_MAX;

/// Plans that the book keeps, besides those that open reservations were admitted under.
pub const PLANS_KEPT_MAX: usize = 64;

/// Of those, the newest that are left when the rest is dropped.
pub const PLANS_KEPT_MIN: usize = PLANS_KEPT_MAX / 2;

/// Generations that the book keeps to bring untouched lineages up to date. Past it all lineages are touched and the older ones dropped.
pub const GENERATIONS_KEPT_MAX: usize = 4_096;

/// Tenant records set by command that a book holds.
pub const TENANTS_MAX: usize = 1_000_000;

/// Webhooks that a book holds: one for each tenant of a large platform. At half a KiB each this is 5 MiB.
pub const WEBHOOKS_MAX: usize = 10_000;

/// Longest address of a webhook: what browsers and proxies take.
pub const WEBHOOK_URL_BYTES_MAX: usize = 2_048;

/// Shortest and longest key of a webhook's signatures, as the Standard Webhooks specification recommends.
pub const WEBHOOK_SECRET_BYTES_MIN: usize = 24;
/// See [`WEBHOOK_SECRET_BYTES_MIN`].
pub const WEBHOOK_SECRET_BYTES_MAX: usize = 64;

/// The hint to wait for a free slot: concurrency has no reset, operations take seconds.
pub const SLOT_RETRY_MS: u64 = 1_000;

/// The rules that this version of the ledger knows.
pub const RULES_VERSION_MAX: u32 = 1;

/// Most legs of one reservation: 3 levels × 4 units × 2 kinds of limit, with room for route, model and region scopes.
pub const LEGS_MAX: usize = 32;

/// Most limits of one plan.
pub const LIMITS_PER_PLAN_MAX: usize = 256;

/// Most routes of one plan.
pub const ROUTES_PER_PLAN_MAX: usize = 256;

/// Most models that one plan has prices for.
pub const PRICES_PER_PLAN_MAX: usize = 4_096;

/// Most models that one rewrite of a route replaces.
pub const REWRITE_MODELS_MAX: usize = 256;

/// Most fields that one rewrite of a route leaves out.
pub const REWRITE_FIELDS_MAX: usize = 32;

/// Largest weight of a tier: shares of one in ten thousand are fine enough, and the scheduler's sums stay small.
pub const WEIGHT_MAX: u32 = 10_000;

/// Most tiers of one plan.
pub const TIERS_PER_PLAN_MAX: usize = 256;

/// Largest plan or tenant document: 10 000 tenants at 100 bytes each.
pub const PLAN_BYTES_MAX: usize = 1 << 20;

/// Deepest nesting of a document. The format itself needs 7: `tenants.<t>.users.<u>.limits.<l>.amount`.
pub const PLAN_DEPTH_MAX: usize = 12;

/// Most values of a document, keys included, so that a megabyte of commas stays cheap.
pub const PLAN_NODES_MAX: usize = 200_000;

/// Most problems that are reported of one document; the last one then says that there are more.
pub const PLAN_ERRORS_MAX: usize = 1_000;

/// Problems of a document up to which the nearest right word is looked for: each costs 256 comparisons.
pub const PLAN_HINTS_MAX: usize = 100;

/// Most patterns of one part of a match.
pub const PATTERNS_PER_MATCH_MAX: usize = 64;

/// Longest duration in a plan: a leap year. Added to a clock of ms since 1970 it is far from overflow.
pub const DURATION_MS_MAX: u64 = 366 * 24 * 3_600_000;

/// Longest id window: every ended reservation is remembered for as long.
pub const ID_WINDOW_MS_MAX: u64 = 24 * 3_600_000;

/// Shortest id window: a client must get its retries into it.
pub const ID_WINDOW_MS_MIN: u64 = 10_000;

/// Longest EXPIRING.
pub const EXPIRING_GRACE_MS_MAX: u64 = 3_600_000;

/// Hold TTL of a route that says nothing.
pub const HOLD_TTL_MS: u64 = 60_000;

/// Longest hold TTL of a route that says nothing (or its hold TTL, if that is longer).
pub const HOLD_TTL_MS_MAX: u64 = 26 * 3_600_000;

/// Usage deadline of a route that says nothing.
pub const USAGE_DEADLINE_MS: u64 = 15 * 60_000;

/// Longest usage deadline of a route that says nothing (or its usage deadline, if that is longer).
pub const USAGE_DEADLINE_MS_MAX: u64 = 26 * 3_600_000;

/// How long an estimated settlement of a route that says nothing waits for its correction: reports of usage
/// come within hours.
pub const CORRECTION_WINDOW_MS: u64 = 24 * 3_600_000;

/// Longest correction window: a month's bill. Each estimated settlement is remembered for as long.
pub const CORRECTION_WINDOW_MS_MAX: u64 = 35 * 24 * 3_600_000;

/// Life of an emergency shard whose plan says nothing.
pub const SHARD_TTL_MS: u64 = 5 * 60_000;

/// Open reservations that a book holds before it refuses new ones (it never evicts).
pub const RESERVATIONS_OPEN_MAX: usize = 4_000_000;

/// Reservations, open and remembered, that a book holds before it refuses new ones.
pub const RESERVATIONS_KEPT_MAX: usize = 16_000_000;

/// Accounts of the enforced lane that a book holds before it refuses to open new ones.
pub const ACCOUNTS_MAX: usize = 16_000_000;

/// Accounts of the shadow lane, besides [`ACCOUNTS_MAX`]: past it the shadow lane decides nothing.
pub const SHADOW_ACCOUNTS_MAX: usize = 4_000_000;

const _: () = assert!(RESERVATIONS_OPEN_MAX <= RESERVATIONS_KEPT_MAX);
const _: () = assert!(TIMERS_PER_ENTRY_MAX >= 2 * COMMANDS_PER_ENTRY_MAX);
const _: () = assert!(ID_AHEAD_MS < ID_WINDOW_MS_MIN);
const _: () = assert!(ID_WINDOW_MS_MIN <= ID_WINDOW_MS && ID_WINDOW_MS <= ID_WINDOW_MS_MAX);
const _: () = assert!(EVENTS_KEPT_MS_MIN <= EVENTS_KEPT_MS && EVENTS_KEPT_MS <= DURATION_MS_MAX);
const _: () = assert!(EXPIRING_GRACE_MS <= EXPIRING_GRACE_MS_MAX);
const _: () = assert!(HOLD_TTL_MS <= HOLD_TTL_MS_MAX && HOLD_TTL_MS_MAX <= DURATION_MS_MAX);
const _: () =
    assert!(CORRECTION_WINDOW_MS <= CORRECTION_WINDOW_MS_MAX && CORRECTION_WINDOW_MS_MAX <= DURATION_MS_MAX);
const _: () = assert!(USAGE_DEADLINE_MS <= USAGE_DEADLINE_MS_MAX && USAGE_DEADLINE_MS_MAX <= DURATION_MS_MAX);

/// Most violations that an audit lists: the first ones tell, and a wrong book may have millions.
pub const VIOLATIONS_SHOWN_MAX: usize = 100;
