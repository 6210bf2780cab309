//! The parts of the account equation that the model has figures for, checked on the model itself.

use std::collections::BTreeMap;

use holdfast_ledger::plan::Rule;

use crate::naive::Model;

impl Model {
    /// C4, C6 and the caps of C7 and C8 on every lineage that anything happened to.
    pub fn check_equation(&self) -> Result<(), String> {
        let mut open: BTreeMap<_, i128> = BTreeMap::new();
        for (key, amount) in self.open_legs() {
            *open.entry(key).or_default() += i128::from(amount);
        }
        for key in self.keys() {
            let balance = self.balance(&key, self.clock_ms);
            let held = open.get(&key).copied().unwrap_or(0);
            if held != balance.held_in_all {
                return Err(format!(
                    "C4 of the model at {key}: {held} in legs, {} held",
                    balance.held_in_all
                ));
            }
            if balance.debt < 0 || balance.available < 0 || balance.spent < 0 {
                return Err(format!("C2 of the model at {key}: {balance:?}"));
            }
            if balance.debt > 0 && balance.available > 0 {
                return Err(format!("C6 of the model at {key}: {balance:?}"));
            }
            let capped = !matches!(balance.rule, Some(Rule::Unlimited { .. }) | None);
            if capped && balance.available > balance.gives {
                return Err(format!("C7 or C8 of the model at {key}: {balance:?}"));
            }
        }
        Ok(())
    }
}
