//! The task that sends: it follows the book's events while this node leads, and writes down what was delivered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_ledger::Command;
use holdfast_ledger::command::AdvanceWebhook;
use holdfast_ledger::event::{Event, EventKind};
use holdfast_ledger::ids::TenantId;
use holdfast_proto::events::tenant_of;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::courses::{Courses, Due};
use super::delivery::{Delivery, delivery};
use super::post::Poster;
use crate::api::{Context, on_raft};
use crate::limits::{WEBHOOK_POLL, WEBHOOK_RECORD_PAUSE};

/// What the sender tells of its deliveries, for metrics and for whoever asks after a webhook.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    pub(crate) delivered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) missed: AtomicU64,
    /// When the oldest event happened that waits for a webhook, book time, ms; 0: none does.
    pub(crate) waiting_since_ms: AtomicU64,
    problems: Mutex<BTreeMap<TenantId, (u32, String)>>,
}

impl Deliveries {
    /// Attempts for a tenant that failed one after the other, and why the last one did; `None`: the last one did not fail,
    /// or this node does not lead.
    pub(crate) fn problem(&self, tenant: &TenantId) -> Option<(u32, String)> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned()
    }

    fn tell(&self, problems: BTreeMap<TenantId, (u32, String)>, waiting_since_ms: u64) {
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = problems;
        self.waiting_since_ms.store(waiting_since_ms, Ordering::Relaxed);
    }
}

/// What has come to its end.
enum Ended {
    Delivery(Due, Result<(), String>),
    /// The book was told of cursors, or was not.
    Recorded(Option<Vec<(TenantId, u64)>>),
}

/// The sender of one node.
pub(crate) struct Sender {
    cx: Arc<Context>,
    poster: Poster,
    /// Where all webhooks are; `None`: this node does not lead.
    courses: Option<Courses>,
    under_way: JoinSet<Ended>,
    recording: bool,
    record_after: Instant,
    began: Instant,
}

impl Sender {
    pub(crate) fn new(cx: Arc<Context>, deadline: Duration) -> Sender {
        let now = Instant::now();
        Sender {
            cx,
            poster: Poster::new(deadline),
            courses: None,
            under_way: JoinSet::new(),
            recording: false,
            record_after: now,
            began: now,
        }
    }

    /// Sends until `stop` becomes true. What is under way then is cut off, and sent again by the next leader.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut news = self.cx.events.listen();
        loop {
            self.follow_leadership();
            self.look();
            self.send();
            self.record();
            self.tell();
            let pause = self.pause();
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                Some(ended) = self.under_way.join_next() => {
                    if let Ok(ended) = ended {
                        self.on_ended(ended);
                    }
                }
                changed = news.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A hint is enough: two nodes that both believe that they lead deliver twice, which is allowed, and what they
    /// send is committed in any case.
    fn follow_leadership(&mut self) {
        match (self.cx.node.seems_to_lead(), self.courses.is_some()) {
            (true, false) => self.begin(),
            (false, true) => self.end(),
            _ => {}
        }
    }

    fn begin(&mut self) {
        let courses = self.cx.node.replica().read(|book| {
            let cursors = book.webhooks().map(|row| (row.tenant.clone(), row.cursor));
            Courses::begin(cursors, book.first_event())
        });
        self.courses = Some(courses);
    }

    fn end(&mut self) {
        self.courses = None;
        self.under_way = JoinSet::new();
        self.recording = false;
        self.cx.deliveries.tell(BTreeMap::new(), 0);
    }

    /// Takes in the events that are new.
    fn look(&mut self) {
        let Some(courses) = &mut self.courses else { return };
        let next = courses.seen() + 1;
        let replica = self.cx.node.replica();
        let (first, events): (u64, Vec<Arc<Event>>) =
            replica.read(|book| (book.first_event(), book.events_from(next).cloned().collect()));
        if first > next {
            // More events than are kept came between two looks, or a snapshot did: what was missed follows from the cursors.
            self.under_way = JoinSet::new();
            self.recording = false;
            return self.begin();
        }
        for event in events {
            if let EventKind::WebhookSet { tenant, .. } = &event.kind {
                let cursor = replica.read(|book| book.webhook(tenant).map(|row| row.cursor));
                courses.on_webhook(tenant, cursor);
            }
            courses.on_event(event.sequence, tenant_of(&event.kind));
        }
    }

    /// Sends what is due.
    fn send(&mut self) {
        let now_ms = self.now_ms();
        let Some(courses) = &mut self.courses else { return };
        for due in courses.take_due(now_ms) {
            match made(&self.cx, &due) {
                Made::Delivery(url, delivery) => {
                    let poster = self.poster.clone();
                    self.under_way.spawn(async move {
                        let outcome = poster.post(&url, delivery).await;
                        Ended::Delivery(due, outcome)
                    });
                }
                Made::Forgotten => courses.on_forgotten(&due.tenant, due.sequence),
                Made::Nowhere => courses.on_webhook(&due.tenant, None),
            }
        }
    }

    /// Tells the book what was delivered: one entry for all webhooks, and one at a time.
    fn record(&mut self) {
        let Some(courses) = &self.courses else { return };
        if self.recording || Instant::now() < self.record_after {
            return;
        }
        let cursors = courses.to_record();
        if cursors.is_empty() {
            return;
        }
        (self.recording, self.record_after) = (true, Instant::now() + WEBHOOK_RECORD_PAUSE);
        let cx = Arc::clone(&self.cx);
        self.under_way.spawn(async move {
            let advance = |(tenant, cursor): &(TenantId, u64)| {
                Command::AdvanceWebhook(AdvanceWebhook { tenant: tenant.clone(), cursor: *cursor })
            };
            for some in cursors.chunks(holdfast_ledger::limits::COMMANDS_PER_ENTRY_MAX) {
                let commands: Vec<Command> = some.iter().map(advance).collect();
                let deadline = on_raft(Instant::now() + cx.bounds.deadline);
                if let Err(error) = cx.node.propose(&commands, deadline).await {
                    tracing::debug!("the cursors of webhooks were not recorded: {error}");
                    return Ended::Recorded(None);
                }
            }
            Ended::Recorded(Some(cursors))
        });
    }

    fn on_ended(&mut self, ended: Ended) {
        let now_ms = self.now_ms();
        let Some(courses) = &mut self.courses else { return };
        match ended {
            Ended::Delivery(due, Ok(())) => {
                self.cx.deliveries.delivered.fetch_add(1, Ordering::Relaxed);
                if let Some((first, last)) = due.missed {
                    self.cx.deliveries.missed.fetch_add(last - first + 1, Ordering::Relaxed);
                }
                courses.on_delivered(&due.tenant, due.sequence);
            }
            Ended::Delivery(Due { tenant, sequence, .. }, Err(problem)) => {
                self.cx.deliveries.failed.fetch_add(1, Ordering::Relaxed);
                tracing::info!(%tenant, event = sequence, "a webhook did not take an event: {problem}");
                courses.on_failed(&tenant, problem, now_ms, rand::random());
            }
            Ended::Recorded(cursors) => {
                self.recording = false;
                courses.on_recorded(&cursors.unwrap_or_default());
            }
        }
    }

    fn tell(&self) {
        let Some(courses) = &self.courses else { return };
        let since_ms = courses.oldest_waiting().map_or(0, |sequence| {
            let replica = self.cx.node.replica();
            replica.read(|book| book.events_from(sequence).next().map_or(0, |event| event.at_ms))
        });
        self.cx.deliveries.tell(courses.problems(), since_ms);
    }

    fn pause(&self) -> Duration {
        let Some(courses) = &self.courses else { return WEBHOOK_POLL };
        let due_ms = courses.next_due_ms().map_or(u64::MAX, |due_ms| due_ms.saturating_sub(self.now_ms()));
        WEBHOOK_POLL.min(Duration::from_millis(due_ms.max(1)))
    }
}

/// What there is to send.
enum Made {
    Delivery(String, Delivery),
    /// The event is not kept any more.
    Forgotten,
    /// The webhook is gone.
    Nowhere,
}

fn made(cx: &Context, due: &Due) -> Made {
    let (row, event) = cx.node.replica().read(|book| {
        let event = book.events_from(due.sequence).next().cloned();
        (book.webhook(&due.tenant).cloned(), event.filter(|event| event.sequence == due.sequence))
    });
    match (row, event) {
        (None, _) => Made::Nowhere,
        (Some(_), None) => Made::Forgotten,
        (Some(row), Some(event)) => {
            let secret = &row.webhook.secret;
            let delivery = delivery(&cx.cluster_id, secret, &event, due.missed, cx.node.now_ms());
            Made::Delivery(row.webhook.url.as_str().to_owned(), delivery)
        }
    }
}
