//! The batcher: one task that turns what waits into entries.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use openraft_rt::{AsyncRuntime, Instant, Mpsc, MpscReceiver, Select2};

use super::bounds::BoundsKeeper;
use super::encode::encode_entry;
use super::{Answered, ProposeError, Waiting};
use crate::clock::ClockFault;
use crate::raft::leadership::Leadership;
use crate::raft::limits::{CLOCK_POLL, CLOCK_WAIT, ENTRY_BYTES_MAX, ENTRY_COMMANDS_MAX};
use crate::raft::metrics::Metrics;
use crate::raft::writes::{Writing, Written};
use crate::replica::AppliedEntry;

type ReceiverOf<R, T> = <<R as AsyncRuntime>::Mpsc as Mpsc>::Receiver<T>;

/// An entry that Raft has, with those who wait for it.
struct UnderWay<R: AsyncRuntime> {
    writing: Writing<R>,
    waiting: Vec<Waiting<R>>,
    began: u64,
}

enum Event<R: AsyncRuntime> {
    Arrived(Option<Waiting<R>>),
    Finished(Written),
}

/// Turns what waits into entries. Ends when every [`super::Proposer`] is gone.
pub(crate) struct Batcher<R: AsyncRuntime> {
    leadership: Leadership<R>,
    queue: ReceiverOf<R, Waiting<R>>,
    metrics: Arc<Metrics>,
    bounds: BoundsKeeper,
    under_way: VecDeque<UnderWay<R>>,
    under_way_max: usize,
    /// Did not fit into the entry before.
    held: Option<Waiting<R>>,
}

impl<R: AsyncRuntime> Batcher<R> {
    pub(crate) fn new(
        leadership: Leadership<R>,
        queue: ReceiverOf<R, Waiting<R>>,
        metrics: Arc<Metrics>,
        under_way_max: usize,
    ) -> Self {
        let under_way = VecDeque::with_capacity(under_way_max);
        let under_way_max = under_way_max.max(1);
        Batcher {
            leadership,
            queue,
            metrics,
            bounds: BoundsKeeper::default(),
            under_way,
            under_way_max,
            held: None,
        }
    }

    pub(crate) async fn run(mut self) {
        loop {
            match self.next_event().await {
                Event::Finished(written) => self.finish_first(written),
                Event::Arrived(Some(first)) => self.propose_with(first).await,
                Event::Arrived(None) => break,
            }
        }
        while let Some(written) = self.first_finished().await {
            self.finish_first(written);
        }
    }

    async fn next_event(&mut self) -> Event<R> {
        if self.under_way.len() >= self.under_way_max
            && let Some(written) = self.first_finished().await
        {
            return Event::Finished(written);
        }
        if let Some(held) = self.held.take() {
            return Event::Arrived(Some(held));
        }
        match self.under_way.front_mut() {
            None => Event::Arrived(self.queue.recv().await),
            // Results are looked at first: finished entries make room and their callers wait.
            Some(first) => match R::select2(&mut first.writing, self.queue.recv()).await {
                Select2::First(written) => Event::Finished(written),
                Select2::Second(arrived) => Event::Arrived(arrived),
            },
        }
    }

    /// What becomes of the oldest entry under way; `None` if there is none.
    async fn first_finished(&mut self) -> Option<Written> {
        let first = self.under_way.front_mut()?;
        Some((&mut first.writing).await)
    }

    /// Makes an entry of `first` and whatever else waits.
    async fn propose_with(&mut self, first: Waiting<R>) {
        if !self.leadership.may_lead() {
            let leader = self.leadership.leader();
            return self.refuse_all(first, |_| ProposeError::NotLeader(leader.clone()));
        }
        let stamp_ms = match stamp(&self.leadership).await {
            Ok(stamp_ms) => stamp_ms,
            Err(fault) => {
                self.metrics.clock_faults.fetch_add(1, Ordering::Relaxed);
                self.leadership.hand_over_because(fault).await;
                return self.refuse_all(first, |_| ProposeError::Clock(fault));
            }
        };
        let waiting = self.fill(first);
        if waiting.is_empty() {
            return;
        }
        let calendars: Vec<_> = waiting.iter().flat_map(|w| w.calendars.iter().cloned()).collect();
        let bounds = self.bounds.wanted(self.leadership.replica(), stamp_ms, &calendars);
        let payload = encode_entry(stamp_ms, &bounds, waiting.iter().map(|w| &w.encoded));
        self.hand_over(payload, waiting).await;
    }

    fn fill(&mut self, first: Waiting<R>) -> Vec<Waiting<R>> {
        let (mut commands, mut bytes) = (0, 0);
        let mut waiting = Vec::new();
        let mut next = Some(first);
        while let Some(candidate) = next {
            let full = commands + candidate.count > ENTRY_COMMANDS_MAX
                || bytes + candidate.encoded.len() > ENTRY_BYTES_MAX;
            if full && commands > 0 {
                self.held = Some(candidate);
                break;
            }
            match candidate.take() {
                Some(taken) => {
                    commands += taken.count;
                    bytes += taken.encoded.len();
                    waiting.push(taken);
                }
                None => _ = self.metrics.proposals_late.fetch_add(1, Ordering::Relaxed),
            }
            next = self.queue.try_recv().ok();
        }
        if commands > 0 {
            self.metrics.entry_commands.record(commands as u64);
            self.metrics.entry_bytes.record(bytes as u64);
        }
        waiting
    }

    async fn hand_over(&mut self, payload: Bytes, waiting: Vec<Waiting<R>>) {
        let began = self.metrics.begin();
        match self.leadership.write(payload).await {
            Ok(writing) => self.under_way.push_back(UnderWay { writing, waiting, began }),
            Err(why) => answer_all(waiting, &ProposeError::Unknown(why)),
        }
        self.metrics.entries_under_way.store(self.under_way.len() as u64, Ordering::Relaxed);
    }

    fn finish_first(&mut self, written: Written) {
        let Some(UnderWay { waiting, began, .. }) = self.under_way.pop_front() else { return };
        self.metrics.entries_under_way.store(self.under_way.len() as u64, Ordering::Relaxed);
        self.metrics.commit_us.record(self.metrics.since(began));
        let counted = waiting.len() as u64;
        let (counter, error) = match written {
            Written::Applied(entry) => {
                self.metrics.proposals_ok.fetch_add(counted, Ordering::Relaxed);
                return deal_out(entry, waiting);
            }
            Written::NotLeader(leader) => (&self.metrics.proposals_refused, ProposeError::NotLeader(leader)),
            Written::Unknown(why) => (&self.metrics.proposals_unknown, ProposeError::Unknown(why)),
        };
        counter.fetch_add(counted, Ordering::Relaxed);
        answer_all(waiting, &error);
    }

    /// Refuses `first` and everything that waits: nothing of it was handed over.
    fn refuse_all(&mut self, first: Waiting<R>, error: impl Fn(&Waiting<R>) -> ProposeError) {
        let mut next = Some(first);
        while let Some(waiting) = next {
            if let Some(waiting) = waiting.take() {
                let error = error(&waiting);
                waiting.answer(Err(error));
            }
            self.metrics.proposals_refused.fetch_add(1, Ordering::Relaxed);
            next = self.held.take().or_else(|| self.queue.try_recv().ok());
        }
    }
}

/// A stamp. A leader of a new term waits a moment for its first round of heartbeats.
async fn stamp<R: AsyncRuntime>(leadership: &Leadership<R>) -> Result<u64, ClockFault> {
    let give_up = R::Instant::now() + CLOCK_WAIT;
    loop {
        match leadership.stamp() {
            Err(ClockFault::NoQuorum { .. }) if R::Instant::now() < give_up && leadership.may_lead() => {
                R::sleep(CLOCK_POLL).await;
            }
            other => return other,
        }
    }
}

fn answer_all<R: AsyncRuntime>(waiting: Vec<Waiting<R>>, error: &ProposeError) {
    for one in waiting {
        one.answer(Err(error.clone()));
    }
}

/// Gives each proposal its part of the entry's answers.
fn deal_out<R: AsyncRuntime>(entry: AppliedEntry, waiting: Vec<Waiting<R>>) {
    let AppliedEntry { index, term, mut first_revision, clock_ms, answers } = entry;
    let mut answers = answers.into_iter();
    for one in waiting {
        let count = one.count;
        let part: Vec<_> = answers.by_ref().take(count).collect();
        one.answer(Ok(Answered { index, term, first_revision, clock_ms, answers: part }));
        first_revision += count as u64;
    }
}
