//! The history index, as the configuration wants it.

use super::Fatal;
use super::data::DataDirectory;
use crate::config::NodeConfig;
use crate::history;
use crate::replica::{EffectSink, NoEffects};
use crate::storage::history::{HistoryConfig, HistoryReader, HistoryThread};

/// What of the index the node holds; empty if it keeps none.
pub(super) struct History {
    pub(super) reader: Option<HistoryReader>,
    thread: Option<HistoryThread>,
}

impl History {
    /// Starts the index in the data directory, and gives what the apply stream feeds.
    pub(super) fn start(
        config: &NodeConfig,
        data: &DataDirectory,
    ) -> Result<(History, Box<dyn EffectSink>), Fatal> {
        if !config.history.enabled {
            return Ok((History { reader: None, thread: None }, Box::new(NoEffects)));
        }
        let kept = HistoryConfig {
            retention_ms: config.history.retention_ms,
            queue_max: usize::try_from(config.history.queue_max).unwrap_or(usize::MAX),
            ..HistoryConfig::default()
        };
        let (sink, reader, thread) = history::start(&data.path().join("history"), kept).map_err(|error| {
            Fatal::Data { directory: data.path().display().to_string(), problem: error.to_string() }
        })?;
        Ok((History { reader: Some(reader), thread: Some(thread) }, Box::new(sink)))
    }

    /// Closes the index.
    pub(super) fn stop(self) {
        if let Some(thread) = self.thread {
            thread.stop();
        }
    }
}
