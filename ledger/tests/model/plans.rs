//! The plans of the scripts: a shape by seed, and variants of it that a publish can go to.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How large the amounts of a script are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Single units, so that every edge is met often.
    Small,
    /// Around the largest number there is.
    Edge,
}

impl Scale {
    /// An amount of this scale, 0 seldom.
    pub fn amount(self, random: &mut ChaCha8Rng, most: u64) -> u64 {
        match self {
            Scale::Small if random.random_ratio(1, 30) => 0,
            Scale::Small => random.random_range(1..=most),
            Scale::Edge => match random.random_range(0..5) {
                0 => u64::MAX,
                1 => u64::MAX - random.random_range(1..=most),
                2 => u64::MAX / 2 + random.random_range(0..=most),
                _ => random.random_range(1..=most),
            },
        }
    }
}

/// Variants of one plan that a script may publish.
pub const VARIANTS: u8 = 5;

/// Records of one tenant that a script may set.
pub const RECORDS: u8 = 4;

/// A document. `shape` decides which limits there are and of what kind, `variant` their amounts.
pub fn document(shape: u64, variant: u8, scale: Scale) -> String {
    let mut kinds = ChaCha8Rng::seed_from_u64(shape);
    let mut amounts = ChaCha8Rng::seed_from_u64(shape.wrapping_mul(31).wrapping_add(u64::from(variant)));
    let mut text = format!(
        "schema: admissionBudget.v1\ncurrency: CNY\nid_window: {}\nexpiring_grace: {}\n",
        if variant == 3 { "20s" } else { "60s" },
        ["1s", "10ms", "5s"][kinds.random_range(0..3)],
    );
    text += "routes:\n";
    let rollout = |random: &mut ChaCha8Rng| match random.random_range(0..7) {
        0 => ", rollout: shadow",
        1 => ", rollout: 50%",
        2 => ", rollout: { percent: 40%, by: user }",
        3 => ", rollout: { percent: 80%, by: user }",
        _ => "",
    };
    let rollouts = [rollout(&mut amounts), rollout(&mut amounts)];
    let debt = if kinds.random_bool(0.5) { ", debt_max: { tokens: 40, requests: 3 }" } else { "" };
    let cap = if kinds.random_bool(0.3) { ", execution_max: { tokens: 90 }" } else { "" };
    text += &format!(
        "  - {{ name: r0, hold_ttl: 3s, hold_ttl_max: 20s, usage_deadline: 6s, usage_deadline_max: 60s, correction_window: 90s{debt}{cap}{} }}\n",
        rollouts[0]
    );
    let most = if scale == Scale::Small { ", reservation_max: { tokens: 70 }" } else { "" };
    text += &format!(
        "  - {{ name: other, match: {{ route: \"*\" }}, hold_ttl: 10s, hold_ttl_max: 1d{most}{} }}\n",
        rollouts[1]
    );
    text += "limits:\n";
    let chosen: Vec<_> = LIMITS.iter().filter(|_| kinds.random_bool(0.35)).collect();
    let chosen = if chosen.is_empty() { vec![&LIMITS[3]] } else { chosen };
    for (at, (name, unit, scope, kind)) in chosen.iter().enumerate() {
        let rule = rule(kind, &mut kinds, &mut amounts, scale);
        // Now and then a variant withdraws a limit, but never all of them.
        if at > 0 && amounts.random_ratio(1, 8) {
            continue;
        }
        // Or another scope, for totals of tenants, or another unit, which no publish may bring.
        let narrow = amounts.random_ratio(1, 8) && scope.starts_with("tenant+") && *kind == "period";
        let scope = if narrow { "tenant" } else { scope };
        let foreign = *kind == "period" && amounts.random_ratio(1, 30);
        let unit = if foreign && *unit == "tokens" { "micros" } else { unit };
        text += &format!("  {name}: {{ unit: {unit}, scope: {scope}, {rule} }}\n");
    }
    text += "tiers: { gold: { limits: {} }, lead: { limits: {} } }\n";
    text += &format!("defaults: {{ tier: {} }}\n", if variant.is_multiple_of(2) { "gold" } else { "lead" });
    text
}

/// Id, unit, scope and kind of every limit that a shape may have.
pub const LIMITS: [(&str, &str, &str, &str); 12] = [
    ("a-all-rate", "requests", "global", "bucket"),
    ("b-all-total", "tokens", "global", "period"),
    ("c-tenant-rate", "requests", "tenant", "bucket"),
    ("d-tenant-total", "tokens", "tenant", "period"),
    ("e-tenant-token-rate", "tokens", "tenant", "bucket"),
    ("f-tenant-money", "micros", "tenant", "period"),
    ("g-tenant-slots", "slots", "tenant", "concurrency"),
    ("h-user-rate", "requests", "tenant+user", "bucket"),
    ("i-user-total", "requests", "tenant+user", "period"),
    ("j-model-total", "tokens", "tenant+model", "period"),
    ("k-route-total", "tokens", "tenant+route", "period"),
    ("l-user-slots", "slots", "tenant+user", "concurrency"),
];

fn rule(kind: &str, kinds: &mut ChaCha8Rng, amounts: &mut ChaCha8Rng, scale: Scale) -> String {
    let unlimited = amounts.random_ratio(1, 12);
    match kind {
        "bucket" => {
            let per = ["1s", "700ms", "7ms", "1", "60s"][kinds.random_range(0..5)];
            let amount = scale.amount(amounts, 20);
            let burst = amount.max(1).saturating_add(amounts.random_range(0..20));
            match (unlimited, amount) {
                (true, _) => format!("bucket: {{ amount: unlimited, per: {per} }}"),
                (false, 0) => format!("bucket: {{ amount: 0, per: {per} }}"),
                (false, _) => format!("bucket: {{ amount: {amount}, per: {per}, burst: {burst} }}"),
            }
        }
        "concurrency" if unlimited => "concurrency: unlimited".to_owned(),
        "concurrency" => format!("concurrency: {}", amounts.random_range(0..6)),
        _ => {
            let mut every = ["5s", "20s", "day", "month", "lifetime"][kinds.random_range(0..5)];
            if every != "lifetime" && amounts.random_ratio(1, 5) {
                // A change of the period, for the end of the running one.
                every = ["7s", "20s", "day", "month"][amounts.random_range(0..4)];
            }
            let carry = kinds.random_ratio(1, 3) && every != "lifetime";
            let keeps_debt = kinds.random_ratio(3, 4) || every == "lifetime";
            let limit = scale.amount(amounts, 100);
            let carry_over = if carry { amounts.random_range(1..40).min(u64::MAX - limit) } else { 0 };
            let limit = if unlimited { "unlimited".to_owned() } else { limit.to_string() };
            let carry = if carry_over > 0 { format!(", carry_over: {carry_over}") } else { String::new() };
            let debt = if keeps_debt { "" } else { ", carry_debt: false" };
            format!("period: {{ limit: {limit}, every: {every}{carry}{debt} }}")
        }
    }
}

/// The document of a tenant's record: overrides of whatever the plan has. `None`: the record is removed.
pub fn record(
    shape: u64,
    plan: &holdfast_ledger::Plan,
    tenant: u8,
    number: u8,
    scale: Scale,
) -> Option<String> {
    if number == 0 {
        return None;
    }
    let seed = shape.wrapping_mul(131).wrapping_add(u64::from(tenant) * 17 + u64::from(number));
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut text = format!("tier: {}\nlimits: {{", if number == 1 { "lead" } else { "gold" });
    let mut users = String::new();
    for limit in &plan.limits {
        let level = limit.scope.level.as_str();
        if level == "global" || !random.random_bool(0.5) {
            continue;
        }
        let amount = match random.random_range(0..6) {
            0 => "unlimited".to_owned(),
            _ => scale.amount(&mut random, 60).min(u64::MAX - 40).to_string(),
        };
        text += &format!(" {}: {amount},", limit.id);
        if level == "user" && random.random_bool(0.5) {
            users += &format!("{}: {},", limit.id, random.random_range(0..9));
        }
    }
    text += " }\n";
    text += &format!("users: {{ u0: {{ limits: {{ {users} }} }} }}\n");
    Some(text)
}
