//! The history index, as the configuration wants it.

use super::Fatal;
use super::data::DataDirectory;
use crate::config::NodeConfig;
use crate::history;
use crate::raft::identity::DiskId;
use crate::replica::{EffectSink, NoEffects};
use crate::storage::history::{HistoryConfig, HistoryReader, HistoryThread};

/// What of the index the node holds; empty if it keeps none.
pub(super) struct History {
    pub(super) reader: Option<HistoryReader>,
    thread: Option<HistoryThread>,
}

impl History {
    /// Starts the index of the data directory, and gives what the apply stream feeds. Nothing is opened yet.
    pub(super) fn start(
        config: &NodeConfig,
        data: &DataDirectory,
        disk_id: DiskId,
    ) -> Result<(History, Box<dyn EffectSink>), Fatal> {
        if !config.history.enabled {
            return Ok((History { reader: None, thread: None }, Box::new(NoEffects)));
        }
        let kept = HistoryConfig {
            disk_id: disk_id.to_bytes(),
            retention_ms: config.history.retention_ms,
            queue_max: usize::try_from(config.history.queue_max).unwrap_or(usize::MAX),
            ..HistoryConfig::default()
        };
        let (sink, reader, thread) =
            history::start(&data.path().join("history"), kept).map_err(|error| Fatal::thread(&error))?;
        Ok((History { reader: Some(reader), thread: Some(thread) }, Box::new(sink)))
    }

    /// Opens the index, now that the node runs.
    pub(super) fn begin(&self) {
        if let Some(thread) = &self.thread {
            thread.begin();
        }
    }

    /// Closes the index.
    pub(super) fn stop(self) {
        if let Some(thread) = self.thread {
            thread.stop();
        }
    }
}
