//! What the HTTP port shows of this node.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_ledger::answer::State;
use openraft_rt::watch::WatchReceiver;
use tokio::sync::watch;

use crate::api::Context;
use crate::http::Face;
use crate::metrics::Sample;
use crate::storage::history::HistoryReader;

/// The node's face.
pub(super) struct NodeFace {
    pub(super) cx: Arc<Context>,
    /// False once the node is asked to stop.
    pub(super) wanted: watch::Receiver<bool>,
}

impl Face for NodeFace {
    fn live(&self) -> Result<(), String> {
        match self.cx.node.watch_fatal().borrow_watched().clone() {
            None => Ok(()),
            Some(why) => Err(why),
        }
    }

    fn ready(&self) -> Result<(), String> {
        self.live()?;
        if !*self.wanted.borrow() {
            return Err("the node is stopping".into());
        }
        self.cx.node.known_leader().map(drop).map_err(|why| why.to_string())
    }

    fn metrics(&self) -> String {
        let status = self.cx.node.status();
        let counts = self.cx.node.replica().read(|book| book.counts());
        let unknown_age_ms_max =
            counts.oldest_unknown_ms.map_or(0, |since| status.wall_clock_ms.saturating_sub(since));
        let deliveries = &self.cx.deliveries;
        let webhook_wait_ms_max = match deliveries.waiting_since_ms.load(Ordering::Relaxed) {
            0 => 0,
            since_ms => status.wall_clock_ms.saturating_sub(since_ms),
        };
        let sample = Sample {
            has_leader: status.leader.is_some(),
            is_leader: status.leader == Some(self.cx.node_id),
            term: status.term,
            last_index: status.last_index.unwrap_or(0),
            committed_index: status.committed_index.unwrap_or(0),
            applied_index: status.applied_index.unwrap_or(0),
            snapshot_index: status.snapshot_index.unwrap_or(0),
            revision: status.revision,
            generation: status.generation,
            queue_depth: status.queued_commands as u64,
            open: vec![
                (State::Reserved, counts.reserved),
                (State::Started, counts.started),
                (State::UsageUnknown, counts.usage_unknown),
            ],
            remembered: counts.remembered + counts.tombstones,
            accounts: counts.accounts,
            in_debt: counts.indebted,
            frozen: counts.frozen,
            unknown_age_ms_max,
            clock_off_ms: status.off_median_ms,
            log_bytes: status.log.bytes,
            log_segments: status.log.segments,
            log_unsynced_bytes: status.log.unsynced_bytes,
            log_syncs: status.log.syncs,
            history_left_out: self.cx.history.as_ref().map_or(0, HistoryReader::left_out),
            history_dropped: self.cx.history.as_ref().map_or(0, HistoryReader::dropped),
            webhooks_delivered: deliveries.delivered.load(Ordering::Relaxed),
            webhooks_failed: deliveries.failed.load(Ordering::Relaxed),
            webhooks_missed: deliveries.missed.load(Ordering::Relaxed),
            webhook_wait_ms_max,
            counters: status.counters,
        };
        self.cx.metrics.encode(sample)
    }

    fn about(&self) -> Vec<(&'static str, String)> {
        let status = self.cx.node.status();
        let shown = |index: Option<u64>| index.map_or("none".to_owned(), |index| index.to_string());
        vec![
            ("cluster", self.cx.cluster_id.clone()),
            ("node", self.cx.node_id.to_string()),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("role", format!("{:?}", status.role).to_lowercase()),
            ("leader", shown(status.leader)),
            ("term", status.term.to_string()),
            ("applied index", shown(status.applied_index)),
            ("revision", status.revision.to_string()),
            ("policy generation", status.generation.to_string()),
        ]
    }
}
