//! When the next message goes, and how much goes with it.

use crate::limits::{BATCH_FULL_COMMANDS, MESSAGES_UNANSWERED_MAX};

/// Messages sent since the last answer. The clock of the stream: an answer lets the next ones go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    sent: usize,
    batch_max: usize,
}

impl Window {
    /// Nothing sent yet; a message carries at most `batch_max` commands.
    pub(super) fn new(batch_max: usize) -> Self {
        Window { sent: 0, batch_max }
    }

    /// Whether a message may go, with so many commands waiting.
    pub(super) fn lets_go(self, waiting: usize) -> bool {
        waiting > 0
            && (self.sent < MESSAGES_UNANSWERED_MAX || waiting >= self.batch_max.min(BATCH_FULL_COMMANDS))
    }

    /// How many of the waiting commands go with it.
    pub(super) fn take(self, waiting: usize) -> usize {
        waiting.min(self.batch_max)
    }

    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// An answer came, or those that were waited for were given up.
    pub(super) fn on_answer(&mut self) {
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use holdfast_proto::limits::BATCH_COMMANDS_MAX;

    use super::*;

    #[test]
    fn a_few_messages_go_then_answers_pace_them() {
        let mut window = Window::new(BATCH_COMMANDS_MAX);
        assert!(!window.lets_go(0));
        for _ in 0..MESSAGES_UNANSWERED_MAX {
            assert!(window.lets_go(1));
            window.on_sent();
        }
        assert!(!window.lets_go(1));
        assert!(window.lets_go(BATCH_FULL_COMMANDS), "a full message does not wait");
        window.on_answer();
        assert!(window.lets_go(1));
        assert_eq!(window.take(BATCH_COMMANDS_MAX + 5), BATCH_COMMANDS_MAX);
    }
}
