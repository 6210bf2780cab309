//! What the leader does by the clock: ticks for the book's timers and for epoch bounds that run out,
//! raising the rules version, and looking at its own clock when nobody proposes.

use std::time::Duration;

use holdfast_ledger::{Answer, Command};
use openraft_rt::{AsyncRuntime, Instant};

use crate::calendar::extend_before_ms;
use crate::propose::Proposer;
use crate::raft::leadership::Leadership;
use crate::raft::limits::{TICK_DEADLINE, TICKS_IN_A_ROW_MAX, TIMER_PAUSE_MIN, TIMER_POLL};

/// The timer task of one node. It proposes only while this node seems to lead.
pub(crate) struct Timers<R: AsyncRuntime> {
    leadership: Leadership<R>,
    proposer: Proposer<R>,
    /// Generation and time up to which no bounds run out.
    bounds_quiet: Option<(u64, u64)>,
}

impl<R: AsyncRuntime> Timers<R> {
    pub(crate) fn new(leadership: Leadership<R>, proposer: Proposer<R>) -> Self {
        Timers { leadership, proposer, bounds_quiet: None }
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            let pause = self.pause();
            R::sleep(pause).await;
            if !self.leadership.may_lead() {
                continue;
            }
            if let Some(fault) = self.leadership.clock_fault() {
                // A new leader has no clocks yet, and one that lost its quorum cannot hand over.
                if !matches!(fault, crate::clock::ClockFault::NoQuorum { .. }) {
                    self.leadership.hand_over_because(fault).await;
                }
                continue;
            }
            self.raise_rules().await;
            if self.is_due() {
                self.tick().await;
            }
        }
    }

    fn pause(&self) -> Duration {
        if !self.leadership.may_lead() {
            return TIMER_POLL;
        }
        let now_ms = self.leadership.now_ms();
        match self.leadership.replica().next_timer_ms() {
            Some(due_ms) => {
                Duration::from_millis(due_ms.saturating_sub(now_ms)).clamp(TIMER_PAUSE_MIN, TIMER_POLL)
            }
            None => TIMER_POLL,
        }
    }

    fn is_due(&mut self) -> bool {
        let now_ms = self.leadership.now_ms();
        self.leadership.replica().next_timer_ms().is_some_and(|due_ms| due_ms <= now_ms)
            || self.bounds_are_due(now_ms)
    }

    fn bounds_are_due(&mut self, now_ms: u64) -> bool {
        let replica = self.leadership.replica();
        let generation = replica.generation();
        if self.bounds_quiet.is_some_and(|(of, until_ms)| of == generation && now_ms < until_ms) {
            return false;
        }
        let due_ms = replica.read(|book| {
            let due = book
                .calendars()
                .map(|(calendar, known)| known.map_or(0, |known| extend_before_ms(known, &calendar)));
            due.min().unwrap_or(u64::MAX)
        });
        // The estimate is early by up to an epoch: believe it only once in a while.
        self.bounds_quiet = Some((generation, due_ms.max(now_ms.saturating_add(60_000))));
        due_ms <= now_ms
    }

    /// Ticks until nothing more is due, or others should get a turn.
    async fn tick(&self) {
        for _ in 0..TICKS_IN_A_ROW_MAX {
            let deadline = R::Instant::now() + TICK_DEADLINE;
            match self.proposer.propose(&[Command::Tick], deadline).await {
                Ok(answered) if matches!(answered.answers[..], [Answer::Ticked { more: true, .. }]) => {}
                Ok(_) => return,
                Err(error) => {
                    tracing::debug!("a tick was not answered: {error}");
                    return;
                }
            }
        }
    }

    async fn raise_rules(&self) {
        let Some(rules_version) = self.leadership.rules_to_raise() else { return };
        let deadline = R::Instant::now() + TICK_DEADLINE;
        if let Err(error) = self.proposer.propose(&[Command::RaiseRules { rules_version }], deadline).await {
            tracing::debug!("raising the rules to {rules_version} was not answered: {error}");
        }
    }
}
