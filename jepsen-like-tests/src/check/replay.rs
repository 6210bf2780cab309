//! Replay: a fresh book is fed the committed order, and every answer that a client got must be the
//! one it gives at that revision. This finds acknowledged commands that were lost, applied
//! twice or applied differently, answers made up before commit, and reads of another moment.

use std::collections::{BTreeMap, HashMap};

use holdfast_ledger::answer::Answer;
use holdfast_ledger::command::Command;
use holdfast_ledger::{Book, ReservationId};
use holdfast_proto::Failure;

use super::{Finding, Findings};
use crate::applied::{AppliedEntry, CommittedOrder, NodeApplied};
use crate::convert::command_of;
use crate::history::{Answered, Call, Operation, Outcome, ReceiptFacts, RefusalFacts};

/// The committed order after replay.
pub struct Replayed {
    commands: Vec<Command>,
    by_id: HashMap<String, Vec<u64>>,
    book: Book,
}

impl Replayed {
    /// Where the call's command stands in the order, if it does.
    pub fn revision_of(&self, operation: &Operation) -> Option<u64> {
        let revisions = self.by_id.get(&operation.id)?;
        revisions
            .iter()
            .copied()
            .find(|revision| operation.call.asks_for(&operation.id, &self.commands[*revision as usize - 1]))
    }

    /// The word for the reservation's state at the end; `None` if there is none (any more).
    pub fn final_state(&self, id: &str) -> Option<&'static str> {
        let id: ReservationId = id.parse().ok()?;
        Some(self.book.reservation(id, self.book.clock_ms())?.state.as_str())
    }

    /// The book at the end.
    pub fn book(&self) -> &Book {
        &self.book
    }
}

/// Replays what the nodes applied and compares. `None` when there is nothing to replay, or it has a gap.
pub fn check(operations: &[Operation], nodes: &[NodeApplied]) -> (Option<Replayed>, Vec<Finding>) {
    let mut findings = Findings::of("replay");
    let order = CommittedOrder::merge(nodes);
    let mut by_revision: BTreeMap<u64, Vec<&Operation>> = BTreeMap::new();
    for operation in operations {
        if let Some(revision) = operation.revision {
            by_revision.entry(revision).or_default().push(operation);
        }
    }
    let mut replay = Replay {
        replayed: Replayed { commands: Vec::new(), by_id: HashMap::new(), book: Book::new() },
        by_revision,
        findings: &mut findings,
    };
    for entry in order.entries() {
        if entry.revision_before != replay.replayed.book.revision() {
            let have = replay.replayed.book.revision();
            findings.inconclusive(format!(
                "the applied logs have nothing between revision {have} and {}",
                entry.revision_before
            ));
            return (None, findings.done());
        }
        replay.entry(entry);
    }
    replay.lost();
    let replayed = replay.replayed;
    for violation in replayed.book.audit().violations {
        findings.violation(format!("the replayed book: {violation:?}"));
    }
    (Some(replayed), findings.done())
}

struct Replay<'a> {
    replayed: Replayed,
    by_revision: BTreeMap<u64, Vec<&'a Operation>>,
    findings: &'a mut Findings,
}

impl Replay<'_> {
    fn entry(&mut self, entry: &AppliedEntry) {
        self.replayed.book.begin_entry(&entry.header);
        // Answers that belong to a command of this entry; the rest read the book between entries.
        for command in &entry.commands {
            let answer = self.replayed.book.apply(command);
            let revision = self.replayed.book.revision();
            if let Some(id) = command.reservation() {
                self.replayed.by_id.entry(id.to_string()).or_default().push(revision);
            }
            self.replayed.commands.push(command.clone());
            let Some(answers) = self.by_revision.get_mut(&revision) else { continue };
            let own = |operation: &&Operation| operation.call.asks_for(&operation.id, command);
            let (logged, others): (Vec<_>, Vec<_>) = answers.drain(..).partition(own);
            *answers = others;
            for operation in logged {
                self.compare(operation, &answer);
            }
        }
        self.replayed.book.end_entry();
        let digest = self.replayed.book.digest();
        if digest != entry.digest {
            self.findings.violation(format!(
                "revision {}: the nodes' digest is {:032x}, replay gives {digest:032x}",
                entry.revision_after(),
                entry.digest
            ));
        }
        let revisions = entry.revision_before + 1..=entry.revision_after();
        for revision in revisions {
            for operation in self.by_revision.remove(&revision).unwrap_or_default() {
                self.between_entries(operation, revision == entry.revision_after());
            }
        }
    }

    fn compare(&mut self, operation: &Operation, answer: &Answer) {
        let expected = Answered::of(answer);
        let fits = match operation.outcome {
            Outcome::Ok => !matches!(expected, Some(Answered::Refused(_))),
            Outcome::Rejected => matches!(expected, Some(Answered::Refused(_))),
            // A client that gave up may still have been told a revision; nothing to compare.
            Outcome::Unavailable | Outcome::Unknown => return,
        };
        if !fits || (operation.answered.is_some() && operation.answered != expected) {
            self.findings.violation(format!(
                "{}: answered {:?}, replay gives {expected:?}",
                operation.describe(),
                operation.answered
            ));
        }
    }

    /// An answer that carries a revision at which another command stands: a read, or a refusal
    /// from applied state, which is what the book says there of the instant that the refusal names. `at_end`: the revision is the last of its entry, as a reader sees it.
    fn between_entries(&mut self, operation: &Operation, at_end: bool) {
        if operation.outcome == Outcome::Unknown {
            return;
        }
        match (&operation.call, operation.outcome) {
            (Call::Get, _) if at_end => self.compare_read(operation),
            (Call::Get, _) => {
                self.findings.violation(format!("{}: read inside an entry", operation.describe()))
            }
            (_, Outcome::Ok) => self.findings.violation(format!(
                "{}: acknowledged, but another command stands at its revision",
                operation.describe()
            )),
            (_, Outcome::Rejected) => self.compare_unlogged(operation, at_end),
            _ => {}
        }
    }

    fn compare_unlogged(&mut self, operation: &Operation, at_end: bool) {
        // A history that was written without typed answers says too little.
        let Some(Answered::Refused(refused)) = &operation.answered else { return };
        let Some(at_ms) = refused.unlogged_at_ms else {
            let problem = "refused by the log, but another command stands at its revision";
            return self.findings.violation(format!("{}: {problem}", operation.describe()));
        };
        let command = command_of(&operation.id, &operation.call, 1).ok().flatten();
        let expected = match (&command, at_end) {
            (Some(Command::Reserve(reserve)), true) => {
                let refusal = self.replayed.book.preview(reserve, at_ms);
                refusal.map(|refusal| Failure::from(&refusal).unlogged_at(at_ms))
            }
            _ => None,
        };
        let expected = expected.as_ref().map(RefusalFacts::from);
        if expected.as_ref() != Some(refused) {
            self.findings.violation(format!(
                "{}: refused from applied state with {refused:?}, replay gives {expected:?}",
                operation.describe()
            ));
        }
    }

    fn compare_read(&mut self, operation: &Operation) {
        let Ok(id) = operation.id.parse::<ReservationId>() else { return };
        let book = &self.replayed.book;
        let expected = book.reservation(id, book.clock_ms()).map(|receipt| ReceiptFacts::of(&receipt));
        let same = match (&operation.answered, &expected) {
            (Some(Answered::Receipt(read)), Some(expected)) => same_but_for_time(read, expected),
            (Some(Answered::Absent | Answered::Refused(_)) | None, None) => true,
            (Some(Answered::Tombstone), None) => true,
            _ => false,
        };
        if !same {
            self.findings.violation(format!(
                "{}: read {:?}, replay gives {expected:?}",
                operation.describe(),
                operation.answered
            ));
        }
    }

    /// What was acknowledged past the end of the order.
    fn lost(&mut self) {
        let last = self.replayed.book.revision();
        for (revision, operations) in std::mem::take(&mut self.by_revision) {
            for operation in operations {
                if revision > last && matches!(operation.outcome, Outcome::Ok) {
                    self.findings.violation(format!(
                        "{}: acknowledged, but the order ends at revision {last}",
                        operation.describe()
                    ));
                }
            }
        }
    }
}

/// A read is projected to the reader's clock, which may be ahead of the book's: a hold may have
/// run out there, or a usage deadline passed.
fn same_but_for_time(read: &ReceiptFacts, expected: &ReceiptFacts) -> bool {
    let ran_out = matches!(
        (expected.state.as_str(), read.state.as_str()),
        ("RESERVED", "EXPIRING" | "EXPIRED") | ("EXPIRING", "EXPIRED") | ("STARTED", "USAGE_UNKNOWN")
    );
    if ran_out { read.same_admission(expected) } else { read == expected }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture::{self, Story};

    fn details(story: &Story) -> Vec<String> {
        check(&story.operations, &story.applied()).1.into_iter().map(|finding| finding.detail).collect()
    }

    #[test]
    fn answers_that_the_book_gives_pass() {
        assert_eq!(details(&Story::of_one_reservation()), Vec::<String>::new());
    }

    #[test]
    fn an_acknowledged_command_that_was_lost_is_found() {
        let mut story = Story::of_one_reservation();
        story.entries.pop();
        assert!(details(&story)[0].contains("the order ends at"));
    }

    #[test]
    fn an_acknowledged_command_that_another_replaced_is_found() {
        let mut story = Story::of_one_reservation();
        story.entries.pop();
        story.append(vec![Command::Tick]);
        assert!(details(&story)[0].contains("another command stands at its revision"));
    }

    #[test]
    fn an_answer_that_differs_in_one_fact_is_found() {
        let mut story = Story::of_one_reservation();
        let last = story.operations.last_mut().unwrap();
        fixture::receipt_mut(last).expires_at_ms += 1;
        assert!(details(&story)[0].contains("replay gives"));
    }

    #[test]
    fn a_success_that_should_have_been_a_refusal_is_found() {
        let mut story = Story::of_one_reservation();
        let last = story.operations.last_mut().unwrap();
        (last.outcome, last.answered) = (Outcome::Rejected, None);
        assert!(details(&story)[0].contains("replay gives"));
    }

    #[test]
    fn a_read_of_another_moment_is_found() {
        let mut story = Story::of_one_reservation();
        story.read_as_it_is();
        assert_eq!(details(&story), Vec::<String>::new());
        let reserved = story.operations[1].answered.clone();
        story.operations.last_mut().unwrap().answered = reserved;
        assert_eq!(details(&story).len(), 1);
    }

    #[test]
    fn a_book_that_went_another_way_is_found() {
        let mut story = Story::of_one_reservation();
        story.entries[1].digest ^= 1;
        assert!(details(&story)[0].contains("digest"));
    }

    #[test]
    fn a_gap_is_not_a_pass() {
        let mut story = Story::of_one_reservation();
        story.entries.remove(1);
        let (replayed, findings) = check(&story.operations, &story.applied());
        assert!(replayed.is_none());
        assert_eq!(findings[0].severity, crate::check::Severity::Inconclusive);
    }

    /// A reserve that more is asked of than the plan can ever give, refused after the story's last entry.
    fn refused_from_applied_state(story: &mut Story) {
        let mut operation = story.operations[1].clone();
        let Call::Reserve { amounts, .. } = &mut operation.call else { panic!() };
        amounts.insert("tokens".to_owned(), u64::MAX);
        operation.id = fixture::id(99).to_string();
        operation.outcome = Outcome::Rejected;
        operation.revision = Some(story.book().revision());
        let command = command_of(&operation.id, &operation.call, 1).unwrap();
        let Some(Command::Reserve(reserve)) = command else { panic!() };
        let at_ms = story.book().clock_ms() + 5;
        let refusal = story.book().preview(&reserve, at_ms).unwrap();
        let failure = Failure::from(&refusal).unlogged_at(at_ms);
        operation.answered = Some(Answered::Refused(RefusalFacts::from(&failure)));
        story.operations.push(operation);
    }

    #[test]
    fn a_refusal_from_applied_state_is_what_the_book_says_there() {
        let mut story = Story::of_one_reservation();
        refused_from_applied_state(&mut story);
        assert_eq!(details(&story), Vec::<String>::new());
        let last = story.operations.last_mut().unwrap();
        let Some(Answered::Refused(refused)) = &mut last.answered else { panic!() };
        refused.reason = "REJECTED_DEBT".to_owned();
        assert!(details(&story)[0].contains("replay gives"));
    }

    #[test]
    fn a_refusal_of_what_the_book_admits_is_found() {
        let mut story = Story::of_one_reservation();
        refused_from_applied_state(&mut story);
        let last = story.operations.last_mut().unwrap();
        let Call::Reserve { amounts, .. } = &mut last.call else { panic!() };
        amounts.insert("tokens".to_owned(), 1);
        assert!(details(&story)[0].contains("replay gives None"));
    }

    #[test]
    fn a_refusal_that_names_no_instant_has_to_stand_in_the_log() {
        let mut story = Story::of_one_reservation();
        refused_from_applied_state(&mut story);
        let last = story.operations.last_mut().unwrap();
        let Some(Answered::Refused(refused)) = &mut last.answered else { panic!() };
        refused.unlogged_at_ms = None;
        assert!(details(&story)[0].contains("refused by the log"));
    }
}
