//! C8 by scanning: over any window, what a bucket admitted less what came back is at most burst + rate × length.

use holdfast_ledger::AdjustmentId;

use crate::lineage::Fact;
use crate::naive::Model;
use holdfast_ledger::plan::Rule;

/// A bucket's amount, per_ms and burst.
type Pace = (i128, i128, i128);

/// Checks every window that begins with an admission and ends with one, of one lineage's facts.
pub fn check_lineage(facts: &[(u64, Fact)]) -> Result<(), String> {
    let mut held = std::collections::BTreeMap::new();
    // Time, what was taken (or given back, negative), and burst and rate that held then.
    let mut moves: Vec<(u64, i128)> = Vec::new();
    let mut rules: Vec<(u64, Option<Pace>)> = Vec::new();
    let mut boosts: Vec<(AdjustmentId, u64, u64, i128)> = Vec::new();
    for (when, fact) in facts {
        match fact {
            Fact::Rule(Some(Rule::Bucket { amount, per_ms, burst }), _) => {
                rules.push((*when, Some((i128::from(*amount), i128::from(*per_ms), i128::from(*burst)))));
            }
            Fact::Rule(..) => rules.push((*when, None)),
            Fact::Hold(id, amount) => {
                held.insert(*id, i128::from(*amount));
                moves.push((*when, i128::from(*amount)));
            }
            Fact::End(id, used, _) => {
                let back = held.remove(id).unwrap_or(0) - i128::from(*used);
                moves.push((*when, -back.max(0)));
            }
            Fact::Correct(_, said, used, _) => {
                moves.push((*when, -(i128::from(*said) - i128::from(*used)).max(0)));
            }
            // What an operator gives is given back.
            Fact::Capacity(amount) => moves.push((*when, -*amount.max(&0))),
            Fact::Usage(..) => {}
            Fact::Boost(id, amount, until) => boosts.push((*id, *when, *until, i128::from(*amount))),
            Fact::EndBoost(id) => {
                for boost in boosts.iter_mut().filter(|(known, ..)| known == id) {
                    boost.2 = boost.2.min(*when);
                }
            }
        }
    }
    let rules = raised(&rules, &boosts);
    for (at, (begin, _)) in moves.iter().enumerate() {
        let mut net = 0;
        for (end, taken) in &moves[at..] {
            net += taken;
            let Some(most) = most_in(&rules, *begin, *end) else { break };
            if net > most {
                return Err(format!("C8: {net} admitted from {begin} to {end}, at most {most} are allowed"));
            }
        }
    }
    Ok(())
}

/// The rules with the boosts that ran: a point wherever either changes.
fn raised(
    rules: &[(u64, Option<Pace>)],
    boosts: &[(AdjustmentId, u64, u64, i128)],
) -> Vec<(u64, Option<Pace>)> {
    let more = |when: u64| -> i128 {
        boosts.iter().filter(|(_, from, until, _)| *from <= when && when <= *until).map(|boost| boost.3).sum()
    };
    let raise = |when: u64, rule: Option<Pace>| {
        rule.map(|(amount, per_ms, burst)| (amount + more(when), per_ms, burst + more(when)))
    };
    let mut points: Vec<_> = rules.iter().map(|(when, rule)| (*when, raise(*when, *rule))).collect();
    for when in boosts.iter().flat_map(|(_, from, until, _)| [*from, *until]) {
        let running = rules.iter().rev().find(|(from, _)| *from <= when).and_then(|(_, rule)| *rule);
        points.push((when, raise(when, running)));
    }
    points.sort_by_key(|(when, _)| *when);
    points
}

/// burst + rate × length, by the largest burst and rate in the window; `None`: no bucket all the way.
fn most_in(rules: &[(u64, Option<Pace>)], begin: u64, end: u64) -> Option<i128> {
    // A rule that ended in the window's first millisecond may have admitted in it.
    let before = rules.iter().filter(|(when, _)| *when < begin).count().saturating_sub(1);
    let mut most: i128 = 0;
    for (when, rule) in rules.iter().skip(before).filter(|(when, _)| *when <= end) {
        let (amount, per_ms, burst) = (*rule)?;
        let _ = when;
        most = most.max(burst + i128::from(end - begin) * amount / per_ms);
    }
    Some(most)
}

impl Model {
    /// C8 over every window of every bucket.
    pub fn check_windows(&self) -> Result<(), String> {
        for key in self.keys() {
            check_lineage(&self.facts(&key)).map_err(|text| format!("{key}: {text}"))?;
        }
        Ok(())
    }
}
