//! What a plan says, in the harness's own words. The document that the ledger parses is written from these,
//! so that the tally needs nothing of what the ledger makes of it.

use std::fmt::Write as _;

use holdfast_ledger::Unit;
use holdfast_ledger::plan::Level;

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `amount` per `per_ms`, at most `burst`.
    Bucket {
        /// Units per interval.
        amount: u64,
        /// The interval, ms.
        per_ms: u64,
        /// Most units held.
        burst: u64,
    },
    /// A total.
    Period {
        /// Units per epoch.
        limit: u64,
        /// How epochs are cut.
        every: Every,
        /// Most unused units that go over.
        carry_over: u64,
        /// Whether debt outlives the epoch.
        carry_debt: bool,
    },
    /// A cap on what is held.
    Slots {
        /// The cap.
        limit: u64,
    },
    /// Counted, never refused.
    Unlimited {
        /// How epochs are cut, where the limit is a total.
        every: Option<Every>,
    },
}

/// How epochs are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// Windows of this many ms (whole seconds) from the Unix epoch on.
    Window(u64),
    /// Days of UTC, whose bounds the leader has to bring.
    Day,
    /// One for ever.
    Lifetime,
}

/// A day, ms.
pub const DAY_MS: u64 = 86_400_000;

impl Every {
    /// The end of the epoch that an instant lies in.
    pub fn end_after(self, at_ms: u64) -> Option<u64> {
        let length_ms = match self {
            Every::Window(length_ms) => length_ms,
            Every::Day => DAY_MS,
            Every::Lifetime => return None,
        };
        Some((at_ms / length_ms + 1) * length_ms)
    }
}

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its id.
    pub id: &'static str,
    /// Its level.
    pub level: Level,
    /// Its unit.
    pub unit: Unit,
    /// Its rule.
    pub rule: Rule,
    /// Most debt, in place of the route's.
    pub overdraft_max: Option<u64>,
}

/// One route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its name.
    pub name: &'static str,
    /// Hold TTL, ms.
    pub hold_ttl_ms: u64,
    /// Usage deadline, ms.
    pub usage_deadline_ms: u64,
    /// Most tokens of one reservation.
    pub tokens_max: Option<u64>,
    /// Most tokens of one execution.
    pub execution_tokens_max: Option<u64>,
    /// Most debt of tokens.
    pub debt_tokens_max: Option<u64>,
}

/// One plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How far back an unknown id may lie, ms.
    pub id_window_ms: u64,
    /// How long EXPIRING lasts, ms.
    pub grace_ms: u64,
    /// The routes.
    pub routes: Vec<Route>,
    /// The limits.
    pub limits: Vec<Limit>,
}

/// What a tenant's record puts in place of a limit's amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// No limit.
    Unlimited,
    /// Another amount; of a bucket, also another burst.
    Amount(u64, Option<u64>),
}

/// One tenant's record: overrides by limit id.
pub type Record = Vec<(&'static str, Override)>;

impl Plan {
    /// The rule of a limit for a tenant with this record.
    pub fn rule_for(&self, limit: &str, record: Option<&Record>) -> Option<Rule> {
        let limit = self.limits.iter().find(|known| known.id == limit)?;
        let said = record.filter(|_| limit.level != Level::Global);
        let said = said.and_then(|record| record.iter().find(|(id, _)| *id == limit.id));
        Some(match (limit.rule, said) {
            (rule, None) => rule,
            (Rule::Period { every, .. }, Some((_, Override::Unlimited))) => {
                Rule::Unlimited { every: Some(every) }
            }
            (_, Some((_, Override::Unlimited))) => Rule::Unlimited { every: None },
            (Rule::Bucket { per_ms, .. }, Some((_, Override::Amount(amount, burst)))) => {
                Rule::Bucket { amount: *amount, per_ms, burst: burst.unwrap_or(*amount) }
            }
            (Rule::Period { every, carry_over, carry_debt, .. }, Some((_, Override::Amount(limit, _)))) => {
                Rule::Period { limit: *limit, every, carry_over, carry_debt }
            }
            (_, Some((_, Override::Amount(limit, _)))) => Rule::Slots { limit: *limit },
        })
    }

    /// The document.
    pub fn document(&self) -> String {
        let mut text = format!(
            "schema: admissionBudget.v1\nid_window: {}ms\nexpiring_grace: {}ms\nroutes:\n",
            self.id_window_ms, self.grace_ms
        );
        for route in &self.routes {
            let Route { name, hold_ttl_ms, usage_deadline_ms, .. } = route;
            let _ = writeln!(
                text,
                "  - name: {name}\n    hold_ttl: {hold_ttl_ms}ms\n    usage_deadline: {usage_deadline_ms}ms"
            );
            let of_tokens = [
                ("reservation_max", route.tokens_max),
                ("execution_max", route.execution_tokens_max),
                ("debt_max", route.debt_tokens_max),
            ];
            for (key, amount) in of_tokens {
                if let Some(amount) = amount {
                    let _ = writeln!(text, "    {key}: {{ tokens: {amount} }}");
                }
            }
        }
        text.push_str("limits:\n");
        for limit in &self.limits {
            let scope = match limit.level {
                Level::Global => "global",
                Level::Tenant => "tenant",
                Level::User => "tenant+user",
            };
            let _ = writeln!(text, "  {}:\n    scope: {scope}\n    unit: {}", limit.id, limit.unit);
            if let Some(most) = limit.overdraft_max {
                let _ = writeln!(text, "    overdraft_max: {most}");
            }
            let _ = writeln!(text, "    {}", rule_text(&limit.rule));
        }
        text
    }
}

fn rule_text(rule: &Rule) -> String {
    match rule {
        Rule::Bucket { amount, per_ms, burst } => {
            format!("bucket: {{ amount: {amount}, per: {per_ms}ms, burst: {burst} }}")
        }
        Rule::Period { limit, every, carry_over, carry_debt } => {
            period_text(&limit.to_string(), *every, *carry_over, *carry_debt)
        }
        Rule::Slots { limit } => format!("concurrency: {limit}"),
        Rule::Unlimited { every } => period_text("unlimited", every.unwrap_or(Every::Lifetime), 0, true),
    }
}

fn period_text(limit: &str, every: Every, carry_over: u64, carry_debt: bool) -> String {
    let length = match every {
        // It has no next one that anything could be carried into.
        Every::Lifetime => return format!("period: {{ limit: {limit}, every: lifetime }}"),
        Every::Window(length_ms) => format!("{}s", length_ms / 1000),
        Every::Day => "day".to_owned(),
    };
    format!(
        "period: {{ limit: {limit}, every: {length}, carry_over: {carry_over}, carry_debt: {carry_debt} }}"
    )
}

/// The document of a tenant's record.
pub fn record_document(record: &Record) -> String {
    let mut text = String::from("limits:\n");
    for (limit, said) in record {
        let _ = match said {
            Override::Unlimited => writeln!(text, "  {limit}: unlimited"),
            Override::Amount(amount, None) => writeln!(text, "  {limit}: {amount}"),
            Override::Amount(amount, Some(burst)) => {
                writeln!(text, "  {limit}: {{ amount: {amount}, burst: {burst} }}")
            }
        };
    }
    text
}
