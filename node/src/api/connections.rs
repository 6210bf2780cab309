//! How many clients there may be, and how much each may have under way on its batched streams.
//!
//! A command counts from the message that brought it until its answer is on the way out. So what a client
//! that does not read its answers makes the node keep is bounded too: by client, and over all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::TURNED_AWAY_MAX;
use crate::metrics::Metrics;

/// The bounds, by configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionBounds {
    /// Connections that are served.
    pub(crate) connections_max: usize,
    /// Commands of one connection's streams.
    pub(crate) connection_commands_max: usize,
    /// Commands of all streams.
    pub(crate) commands_max: usize,
}

/// Everything that clients have open.
pub(crate) struct Connections {
    bounds: ConnectionBounds,
    open: AtomicUsize,
    turned_away: AtomicUsize,
    commands: AtomicUsize,
    metrics: Arc<Metrics>,
}

/// One client's connection, as its calls see it.
#[derive(Clone)]
pub(crate) struct Connection {
    commands: Arc<AtomicUsize>,
    all: Arc<Connections>,
    is_turned_away: bool,
}

/// Counts a connection for as long as it is open.
pub(crate) struct Place {
    all: Arc<Connections>,
    is_turned_away: bool,
}

/// Commands that are under way, for as long as they are.
pub(super) struct Ticket {
    connection: Connection,
    commands: usize,
}

impl Connections {
    pub(crate) fn new(bounds: ConnectionBounds, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Connections {
            bounds,
            open: AtomicUsize::new(0),
            turned_away: AtomicUsize::new(0),
            commands: AtomicUsize::new(0),
            metrics,
        })
    }

    /// Takes a new connection in: to be served; past the bound to be told so; and past the bound of those
    /// too, `None`: to be closed without a word.
    pub(crate) fn admit(self: &Arc<Self>) -> Option<(Connection, Place)> {
        let is_turned_away = !take(&self.open, 1, self.bounds.connections_max);
        if is_turned_away {
            self.metrics.connections_refused.inc();
            if !take(&self.turned_away, 1, TURNED_AWAY_MAX) {
                return None;
            }
        } else {
            self.metrics.connections.inc();
        }
        let connection = Connection { commands: Arc::default(), all: Arc::clone(self), is_turned_away };
        Some((connection, Place { all: Arc::clone(self), is_turned_away }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_turned_away {
            self.all.turned_away.fetch_sub(1, Ordering::AcqRel);
        } else {
            self.all.open.fetch_sub(1, Ordering::AcqRel);
            self.all.metrics.connections.dec();
        }
    }
}

impl Connection {
    /// Whether it is one too many: it is only told so.
    pub(crate) fn is_turned_away(&self) -> bool {
        self.is_turned_away
    }

    /// Room for so many commands.
    ///
    /// # Errors
    /// The name of the bound that they would pass.
    pub(super) fn take(&self, commands: usize) -> Result<Ticket, &'static str> {
        let bounds = &self.all.bounds;
        if !take(&self.commands, commands, bounds.connection_commands_max) {
            return Err("queue.connection_commands_max");
        }
        if !take(&self.all.commands, commands, bounds.commands_max) {
            self.commands.fetch_sub(commands, Ordering::AcqRel);
            return Err("queue.commands_max");
        }
        self.all.metrics.stream_commands.inc_by(commands as i64);
        Ok(Ticket { connection: self.clone(), commands })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Connection { commands, all, .. } = &self.connection;
        commands.fetch_sub(self.commands, Ordering::AcqRel);
        all.commands.fetch_sub(self.commands, Ordering::AcqRel);
        all.metrics.stream_commands.dec_by(self.commands as i64);
    }
}

/// Adds to a count unless that would bring it above `most`.
fn take(count: &AtomicUsize, more: usize, most: usize) -> bool {
    let add = |held: usize| held.checked_add(more).filter(|sum| *sum <= most);
    count.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn connections() -> Arc<Connections> {
        let bounds = ConnectionBounds { connections_max: 2, connection_commands_max: 10, commands_max: 15 };
        Connections::new(bounds, Arc::new(Metrics::new()))
    }

    #[test]
    fn past_the_bound_connections_are_told_and_far_past_it_closed() {
        let all = connections();
        let served: Vec<_> = (0..2).map(|_| all.admit().unwrap()).collect();
        assert!(served.iter().all(|(connection, _)| !connection.is_turned_away()));
        let told: Vec<_> = (0..TURNED_AWAY_MAX).map(|_| all.admit().unwrap()).collect();
        assert!(told.iter().all(|(connection, _)| connection.is_turned_away()));
        assert!(all.admit().is_none());
        assert_eq!(all.metrics.connections.get(), 2);
        assert_eq!(all.metrics.connections_refused.get(), TURNED_AWAY_MAX as u64 + 1);
        drop(told);
        assert!(all.admit().unwrap().0.is_turned_away());
        drop(served);
        assert!(!all.admit().unwrap().0.is_turned_away(), "there is room again");
        assert_eq!(all.metrics.connections.get(), 0);
    }

    #[test]
    fn commands_are_bounded_by_connection_and_over_all() {
        let all = connections();
        let (one, _place) = all.admit().unwrap();
        let (two, _place) = all.admit().unwrap();
        let ten = one.take(10).unwrap();
        assert_eq!(one.take(1).err(), Some("queue.connection_commands_max"));
        let five = two.take(5).unwrap();
        assert_eq!(two.take(1).err(), Some("queue.commands_max"), "its own bound is not reached");
        assert_eq!(all.metrics.stream_commands.get(), 15);
        drop(ten);
        assert_eq!(one.take(usize::MAX).err(), Some("queue.connection_commands_max"));
        let other = two.take(5).unwrap();
        assert_eq!(two.take(1).err(), Some("queue.connection_commands_max"));
        drop((five, other));
        assert_eq!(all.metrics.stream_commands.get(), 0);
        assert!(one.take(10).is_ok());
    }
}
