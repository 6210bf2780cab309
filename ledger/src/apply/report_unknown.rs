//! Report unknown: the gateway lost sight of the operation, STARTED → USAGE_UNKNOWN.

use crate::answer::{Answer, Refusal, State};
use crate::book::Book;
use crate::command::ReportUnknown;

impl Book {
    pub(super) fn apply_report_unknown(&mut self, report: &ReportUnknown) -> Result<Answer, Refusal> {
        let slot = self.known(report.id)?;
        self.check_operation(slot, &report.operation)?;
        match self.state(slot) {
            State::Started => self.make_unknown(slot),
            State::UsageUnknown => self.pass_deadline(slot),
            state => return Err(Refusal::WrongState { state }),
        }
        Ok(self.answer_with(slot))
    }
}
