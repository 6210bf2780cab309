//! Who calls in the demo, how often and for how much, so that the sample plan shows all it can do.

use std::time::Duration;

/// One caller of the demo.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who pays.
    pub tenant: String,
    /// The user within the tenant.
    pub user: &'static str,
    /// Between two requests.
    pub pause: Duration,
    /// Tokens asked for in each.
    pub tokens: u64,
    /// Tokens that a run really uses, in percent of those asked for.
    pub used_percent: u64,
}

/// The callers. `ladder` is a tenant whose month is still unspent.
pub fn callers(ladder: &str) -> Vec<Caller> {
    let caller = |tenant: &str, user, pause_ms, tokens, used_percent| Caller {
        tenant: tenant.to_owned(),
        user,
        pause: Duration::from_millis(pause_ms),
        tokens,
        used_percent,
    };
    vec![
        // A calm tenant: nothing happens to it whatever the others do.
        caller("acme", "ada", 700, 1_200, 70),
        caller("acme", "ben", 900, 2_000, 60),
        // A script that calls 8 times a second meets the user's 5; its colleague is not disturbed.
        caller("beta", "zoe", 125, 300, 80),
        caller("beta", "kim", 1_000, 300, 80),
        // 25 requests of 200 000 tokens fill a trial month of 5 000 000: 80 % after 5 s, 95 % after 6 s, then no more.
        caller(ladder, "max", 250, 200_000, 100),
    ]
}
