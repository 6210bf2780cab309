//! A webhook was served up to an event. Proposed by the leader, who sends.

use crate::answer::Answer;
use crate::book::Book;
use crate::command::AdvanceWebhook;
use crate::webhook::WebhookRow;

impl Book {
    pub(super) fn apply_advance_webhook(&mut self, advance: &AdvanceWebhook) -> Answer {
        let AdvanceWebhook { tenant, cursor } = advance;
        // What has not happened cannot have been sent; and whoever led before may tell of less than is known.
        let cursor = (*cursor).min(self.header.event_sequence);
        let Some(row) = self.webhooks.get(tenant) else { return Answer::Webhook { changed: false } };
        if cursor <= row.cursor {
            return Answer::Webhook { changed: false };
        }
        self.put_webhook(WebhookRow { cursor, ..row.clone() });
        Answer::Webhook { changed: true }
    }
}
