//! The commands, one file each.

use crate::answer::{Answer, Refusal};
use crate::book::Book;
use crate::command::Command;

impl Book {
    pub(crate) fn apply_command(&mut self, command: &Command) -> Answer {
        let _ = command;
        Answer::Refused(Refusal::NotFound)
    }
}
