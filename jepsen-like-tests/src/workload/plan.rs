//! The plan that test runs are made under.

/// What differs between runs.
#[derive(Clone, Copy, Debug)]
pub struct PlanShape {
    /// How long a hold lives that was not started, ms.
    pub hold_ttl_ms: u64,
    /// How long an operation may run without a word, ms.
    pub usage_deadline_ms: u64,
    /// Reservations that a tenant may have open at the same time: what the clients contend for.
    pub slots_per_tenant: u64,
}

/// Names that the checkers need.
pub mod limit_names {
    /// Tokens of a tenant, in one epoch for ever: every reservation falls under it.
    pub const TENANT_TOKENS: &str = "tenant-tokens";
}

/// The tenants: the first is the hot one.
pub fn tenant_names(count: u32) -> Vec<String> {
    (0..count).map(|at| if at == 0 { "hot".to_owned() } else { format!("spread-{at}") }).collect()
}

/// The route that every request names.
pub(super) const ROUTE: &str = "chat.generate";

/// The most tokens of one reservation.
pub(super) const TOKENS_MAX: u64 = 10_000;

/// What a request for several slots asks for; it takes one.
pub(super) const SLOTS_WANTED: u64 = 3;

/// The document. Tokens and the global total are wide enough that only slots refuse, so that the
/// sums of tokens can be told from the answers.
pub fn document(shape: PlanShape) -> String {
    let PlanShape { hold_ttl_ms, usage_deadline_ms, slots_per_tenant } = shape;
    format!(
        "schema: admissionBudget.v1
routes:
  - name: {ROUTE}
    reservation_max: {{ tokens: {TOKENS_MAX} }}
    hold_ttl: {hold_ttl_ms}ms
    usage_deadline: {usage_deadline_ms}ms
limits:
  global-tokens:
    scope: global
    unit: tokens
    period: {{ limit: 1_000_000_000_000_000, every: lifetime }}
  {tokens}:
    scope: tenant
    unit: tokens
    period: {{ limit: 1_000_000_000_000, every: lifetime }}
  tenant-slots:
    scope: tenant
    unit: slots
    concurrency: {{ limit: {slots_per_tenant} }}
  user-requests:
    scope: tenant+user
    unit: requests
    bucket: {{ amount: 100_000, per: 1s }}
",
        tokens = limit_names::TENANT_TOKENS,
    )
}
