//! The result of a bench run, as a document and as text.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::tally::Tally;
use crate::output::{Rows, grouped};

/// Everything that was measured.
#[derive(Debug)]
pub struct Report {
    /// The mix that was driven.
    pub mix: &'static str,
    /// How many accounts it went to.
    pub accounts: u32,
    /// Callers at the same time.
    pub clients: u32,
    /// Callers besides them who were only refused.
    pub storm: u32,
    /// Clients of the library, each with its own stream.
    pub gateways: u32,
    /// Most commands in one message of a stream.
    pub batch: usize,
    /// Measured time.
    pub seconds: f64,
    /// Counts and latencies.
    pub tally: Tally,
    /// CPU microseconds an operation, by process.
    pub cpu_us_per_op: BTreeMap<String, f64>,
}

impl Report {
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }

    /// The document that programs read.
    pub fn document(&self) -> Value {
        json!({
            "mix": self.mix,
            "accounts": self.accounts,
            "clients": self.clients,
            "storm": self.storm,
            "refused_per_s": self.per_second(self.tally.refused).round(),
            "gateways": self.gateways,
            "batch": self.batch,
            "seconds": rounded(self.seconds),
            "ops_per_s": self.per_second(self.tally.operations).round(),
            "pairs_per_s": self.per_second(self.tally.rounds).round(),
            "p50_ms": self.tally.latency_ms(0.5),
            "p99_ms": self.tally.latency_ms(0.99),
            "p999_ms": self.tally.latency_ms(0.999),
            "max_ms": self.tally.latency_ms(1.0),
            "errors": self.tally.errors,
            "cpu_us_per_op": self.cpu_us_per_op.iter().map(|(name, us)| (name.clone(), json!(rounded(*us))))
                .collect::<serde_json::Map<_, _>>(),
        })
    }

    /// What people read.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} on {} account(s): {} callers, {} gateway(s), at most {} commands a message, {:.1} s\n\n",
            self.mix,
            grouped(self.accounts.into()),
            grouped(self.clients.into()),
            self.gateways,
            self.batch,
            self.seconds
        );
        let mut rows = Rows::new(["measure", "value"]);
        rows.add(["operations/s".into(), grouped(self.per_second(self.tally.operations) as u64)]);
        rows.add(["pairs/s".into(), grouped(self.per_second(self.tally.rounds) as u64)]);
        if self.storm > 0 {
            let refused = grouped(self.per_second(self.tally.refused) as u64);
            rows.add([format!("refused/s, to {} more callers", grouped(self.storm.into())), refused]);
        }
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)] {
            rows.add([format!("latency {name}"), format!("{:.2} ms", self.tally.latency_ms(quantile))]);
        }
        for (kind, count) in &self.tally.errors {
            rows.add([format!("errors: {kind}"), grouped(*count)]);
        }
        for (name, us) in &self.cpu_us_per_op {
            // Microseconds an operation are the same number as seconds a million operations.
            rows.add([format!("CPU of {name}"), format!("{us:.2} s a million operations")]);
        }
        text.push_str(&rows.text());
        text
    }
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
