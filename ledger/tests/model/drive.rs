//! Runs a script on the book, on a twin that is snapshotted and restored, on a follower that builds no
//! answers, and on the model.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use holdfast_ledger::command::{Command, EntryHeader, EpochBounds};
use holdfast_ledger::event::EventKind;
use holdfast_ledger::ids::{TenantId, UserId};
use holdfast_ledger::plan::Calendar;
use holdfast_ledger::record::Lane;
use holdfast_ledger::{Answer, Book, Effect, QuotaLine, Refusal, ReservationId};

use crate::compare::{compare_answer, compare_drains, compare_quotas, compare_shadow, sketch_of};
use crate::epochs::{BEGIN_MS, bounds_until};
use crate::naive::Model;
use crate::script::{Act, Script, Step};
use crate::statements::compare_statements;

/// Where and how book and model differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The step after which it showed.
    pub step: usize,
    pub text: String,
}

/// What a run that found no difference came to.
pub struct Outcome {
    pub model: Model,
    pub book: Book,
    /// What the book answered, step by step; steps that had nothing to ask are left out.
    pub answers: Vec<Answer>,
}

/// How to falsify a run, to see that the comparison notices.
pub type Tamper = fn(step: usize, answer: &mut Answer);

/// Runs a whole script. A panic of the book is a difference too.
pub fn run(script: &Script, tamper: Option<Tamper>) -> Result<Outcome, Difference> {
    run_without(script, tamper, &BTreeSet::new())
}

/// The same with ticks in place of what is asked of some reservations.
pub fn run_without(
    script: &Script,
    tamper: Option<Tamper>,
    left_out: &BTreeSet<ReservationId>,
) -> Result<Outcome, Difference> {
    let mut at = 0;
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new(script, tamper);
        run.left_out = left_out.clone();
        let mut from = 0;
        while from < script.steps.len() {
            at = from;
            let mut to = from + 1;
            while script.steps.get(to).is_some_and(|step| step.joins) {
                to += 1;
            }
            run.entry(&script.steps[from..to], from)?;
            from = to;
        }
        run.model.check_windows().map_err(|text| Difference { step: at, text })?;
        Ok(Outcome { model: run.model, book: run.book, answers: run.answers })
    }));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Difference { step: at, text: format!("panic: {}", text.unwrap_or_default()) })
    })
}

struct Run<'s> {
    script: &'s Script,
    tamper: Option<Tamper>,
    left_out: BTreeSet<ReservationId>,
    book: Book,
    twin: Book,
    follower: Book,
    model: Model,
    answers: Vec<Answer>,
    /// What a history index that lost nothing was told, with the revision of each.
    told: Vec<(u64, Effect)>,
    index: u64,
    stamp_ms: u64,
}

impl<'s> Run<'s> {
    fn new(script: &'s Script, tamper: Option<Tamper>) -> Self {
        let (book, twin, follower) = (Book::new(), Book::new(), Book::new());
        let (model, answers, told) = (Model::default(), Vec::new(), Vec::new());
        let (left_out, index, stamp_ms) = (BTreeSet::new(), 0, BEGIN_MS);
        Run { script, tamper, left_out, book, twin, follower, model, answers, told, index, stamp_ms }
    }

    fn entry(&mut self, steps: &[Step], first: usize) -> Result<(), Difference> {
        self.stamp_ms = self.stamp_ms.saturating_add_signed(steps[0].after_ms);
        self.index += 1;
        let plan = self.model.plan().cloned();
        let wanted = |command: Command| match command.reservation() {
            Some(id) if self.left_out.contains(&id) => Command::Tick,
            _ => command,
        };
        let command = |step: &Step| self.script.command(&step.act, plan.as_deref()).map(wanted);
        let commands: Vec<Option<Command>> = steps.iter().map(command).collect();
        let header = EntryHeader {
            index: self.index,
            term: 1,
            stamp_ms: self.stamp_ms,
            epoch_bounds: self.bounds(commands.iter().flatten()),
        };
        let difference = |at: usize, text: String| Difference { step: first + at, text };
        // Bounds that only the entry brings along are not there for a preview.
        let preview = if header.epoch_bounds.is_empty() { self.preview(commands[0].as_ref()) } else { None };
        self.book.begin_entry(&header);
        self.twin.begin_entry(&header);
        self.model.begin_entry(self.stamp_ms);
        for (at, command) in commands.iter().enumerate() {
            let Some(command) = command else { continue };
            let mut answer = self.book.apply(command);
            if self.twin.apply(command) != answer {
                return Err(difference(at, format!("a restored book answers otherwise than {answer:#?}")));
            }
            if let (0, Some(previewed)) = (at, &preview) {
                check_preview(previewed.as_ref(), &answer).map_err(|text| difference(at, text))?;
            }
            if let Some(tamper) = self.tamper {
                tamper(first + at, &mut answer);
            }
            let verdict = self.model.apply(command);
            compare_answer(&answer, &verdict, &self.model).map_err(|text| difference(at, text))?;
            self.answers.push(answer);
            if self.book.revision() != self.model.revision {
                return Err(difference(
                    at,
                    format!("revision {} after {}", self.book.revision(), self.model.revision),
                ));
            }
        }
        self.book.end_entry();
        self.twin.end_entry();
        let commands: Vec<Command> = commands.into_iter().flatten().collect();
        self.follower.apply_entry_quietly(&header, &commands);
        let effects = self.book.drain_effects();
        if self.follower.drain_effects() != effects {
            return Err(difference(0, "a book that builds no answers has other effects".to_owned()));
        }
        self.told.extend(effects.into_iter().filter_map(with_revision));
        self.check_retained().map_err(|text| difference(0, text))?;
        if steps.iter().any(|step| step.restores) {
            self.restore().map_err(|text| difference(0, text))?;
        }
        self.check(steps).map_err(|text| difference(steps.len() - 1, text))
    }

    /// What a refusal from applied state would say, where that has to agree with the entry: no timer is due in between.
    fn preview(&self, command: Option<&Command>) -> Option<Option<Refusal>> {
        let Some(Command::Reserve(reserve)) = command else { return None };
        let due = self.book.next_timer_ms().is_some_and(|due| due <= self.stamp_ms);
        let known = self.book.reservation(reserve.id, self.stamp_ms).is_some();
        (!due && !known).then(|| self.book.preview(reserve, self.stamp_ms))
    }

    /// What a leader would add: bounds for the calendars in force and for those of plans under way.
    fn bounds<'c>(&self, commands: impl Iterator<Item = &'c Command>) -> Vec<EpochBounds> {
        let now = self.stamp_ms.max(self.book.clock_ms());
        let wants = |known: &Option<u64>| known.is_none_or(|until| until < now + 300_000);
        let mut bounds: Vec<_> = self
            .book
            .calendars()
            .filter(|(_, known)| wants(known))
            .map(|(calendar, known)| bounds_until(&calendar, known, now))
            .collect();
        for command in commands {
            if let Command::PublishPlan(publish) = command {
                let calendars = publish.plan.calendars();
                let wanted =
                    calendars.iter().filter(|calendar: &&Arc<Calendar>| calendar.period.wants_bounds());
                bounds.extend(wanted.map(|calendar| bounds_until(calendar, None, now)));
            }
        }
        bounds
    }

    /// The twin goes through a snapshot.
    fn restore(&mut self) -> Result<(), String> {
        let snapshot = self.twin.snapshot();
        let restored = Book::restore(snapshot.records()).map_err(|error| format!("restore: {error}"))?;
        if restored.digest() != self.twin.digest() {
            return Err("a restored book has another digest".to_owned());
        }
        self.twin = restored;
        Ok(())
    }

    /// A history index that lost everything is told all that ended or happened since the revision it is told, whether
    /// the whole or only the newest is asked for.
    fn check_retained(&mut self) -> Result<(), String> {
        let frozen = self.twin.snapshot();
        for records_max in [usize::MAX, 3] {
            let retained = frozen.retained(records_max);
            let from = retained.complete_from_revision;
            let retained: Vec<_> = retained.filter_map(with_revision).collect();
            if retained.len() > records_max || !retained.is_sorted_by_key(|(revision, _)| *revision) {
                return Err(format!("too much is retained, or out of order: {retained:#?}"));
            }
            for (revision, effect) in self.told.iter().filter(|(revision, _)| *revision >= from) {
                if !retained.contains(&(*revision, effect.clone())) {
                    return Err(format!(
                        "complete from {from}, but this of {revision} is not retained: {effect:#?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Everything that is compared after an entry.
    fn check(&mut self, steps: &[Step]) -> Result<(), String> {
        if self.follower.digest() != self.book.digest() {
            return Err("a book that builds no answers has another digest".to_owned());
        }
        if self.book.digest() != self.twin.digest() {
            return Err("book and restored twin have different digests".to_owned());
        }
        let report = self.book.audit();
        if !report.ok || report.digest != self.book.digest() {
            let violations: Vec<_> = report.violations.iter().map(ToString::to_string).collect();
            return Err(format!("audit: {violations:#?}"));
        }
        if self.book.clock_ms() != self.model.clock_ms || self.book.generation() != self.model.generation() {
            return Err(format!(
                "the book's clock is {}, the model's {}",
                self.book.clock_ms(),
                self.model.clock_ms
            ));
        }
        self.model.check_equation()?;
        compare_shadow(&self.book, &self.model)?;
        let now = self.book.clock_ms();
        for at_ms in [now, now + 9_000] {
            compare_drains(&self.book, &self.model, at_ms)?;
        }
        for tenant in ["t0", "t1"] {
            for user in [None, Some("u0"), Some("u1")] {
                let tenant = TenantId::new(tenant).map_err(|error| error.to_string())?;
                let user = user.map(UserId::new).transpose().map_err(|error| error.to_string())?;
                for at_ms in [now, now + 4_321, now + 150_000] {
                    compare_quotas(&self.book, &self.model, &tenant, user.as_ref(), at_ms)?;
                }
                for at_ms in [now, now + 150_000] {
                    compare_statements(&self.book, &mut self.model, &tenant, user.as_ref(), at_ms)?;
                }
            }
        }
        for step in steps {
            if let Act::Reserve { id, .. }
            | Act::Start { id, .. }
            | Act::Settle { id, .. }
            | Act::Correct { id, .. }
            | Act::Resolve { id, .. }
            | Act::Release { id } = step.act
            {
                for at_ms in [now, now + 9_000] {
                    self.compare_reservation(id.ulid(), at_ms)?;
                }
            }
        }
        Ok(())
    }

    fn compare_reservation(&self, id: ReservationId, at_ms: u64) -> Result<(), String> {
        let found = self.book.reservation(id, at_ms).map(|receipt| sketch_of(&receipt));
        let wanted = self.model.reservation(id, at_ms);
        match (&found, &wanted) {
            (Some(found), Some(wanted)) if found.state == wanted.state && found.legs == wanted.legs => Ok(()),
            (None, None) => Ok(()),
            _ => Err(format!("at {at_ms} the book has {id} as {found:#?}\nand the model as {wanted:#?}")),
        }
    }
}

/// Statements have no revision and are not retained.
fn with_revision(effect: Effect) -> Option<(u64, Effect)> {
    let revision = match &effect {
        Effect::Ended(receipt) => receipt.correction().map(|c| c.revision).or(receipt.ended_revision)?,
        Effect::Event(event) => event.revision,
        Effect::Statement(_) => return None,
    };
    Some((revision, effect))
}

/// Whether the enforced lane answers the same when nothing is ever asked of the shadow lane, ends with the same
/// quotas, and has told the same. Gives how many reservations the shadow lane had.
pub fn shadow_leaves_no_trace(script: &Script) -> Result<usize, Difference> {
    leaves_no_trace(script, Lane::Shadow)
}

/// The same of any lane: that of the enforced one leaves a trace.
pub fn leaves_no_trace(script: &Script, lane: Lane) -> Result<usize, Difference> {
    // A key stands for whichever reservation came first, in whatever lane.
    let script = &without_keys(script);
    let Outcome { answers: whole, book: with, .. } = run(script, None)?;
    let in_lane = |answer: &Answer| match answer {
        Answer::Reservation(receipt) => (receipt.lane() == lane).then_some(receipt.id),
        _ => None,
    };
    let left_out: BTreeSet<ReservationId> = whole.iter().filter_map(in_lane).collect();
    let Outcome { answers: alone, book: without, .. } = run_without(script, None, &left_out)?;
    for (step, (whole, alone)) in whole.iter().zip(&alone).enumerate() {
        if whole != alone && !matches!(alone, Answer::Ticked { .. }) {
            let text = format!("with the lane: {whole:#?}\nand without: {alone:#?}");
            return Err(Difference { step, text });
        }
    }
    let last = |text: String| Difference { step: script.steps.len() - 1, text };
    let (lines, lines_alone) = (enforced_quotas(&with), enforced_quotas(&without));
    if lines != lines_alone {
        return Err(last(format!("with the lane: {lines:#?}\nand without: {lines_alone:#?}")));
    }
    let (told, told_alone) = (enforced_events(&with, &left_out), enforced_events(&without, &left_out));
    if told != told_alone {
        return Err(last(format!("with the lane: {told:#?}\nand without: {told_alone:#?}")));
    }
    Ok(left_out.len())
}

fn without_keys(script: &Script) -> Script {
    let mut script = script.clone();
    for step in &mut script.steps {
        if let Act::Reserve { key, .. } = &mut step.act {
            *key = None;
        }
    }
    script
}

fn enforced_quotas(book: &Book) -> Vec<QuotaLine> {
    let at_ms = book.clock_ms() + 4_321;
    let mut lines = book.quota_global(Lane::Enforced, at_ms);
    for tenant in ["t0", "t1"].map(|tenant| tenant.parse().unwrap()) {
        for user in [None, Some("u0"), Some("u1")] {
            let user = user.map(|user| user.parse().unwrap());
            lines.extend(book.quota(&tenant, user.as_ref(), at_ms));
        }
    }
    lines
}

/// What happened in the enforced lane and when. Numbers are dense over both lanes, and so are left out.
fn enforced_events(book: &Book, left_out: &BTreeSet<ReservationId>) -> Vec<(u64, u64, EventKind)> {
    let is_enforced = |kind: &EventKind| match kind {
        EventKind::Crossed { lineage, .. }
        | EventKind::Indebted { lineage, .. }
        | EventKind::Repaid { lineage }
        | EventKind::BoostEnded { lineage, .. }
        | EventKind::Forgiven { lineage, .. } => lineage.lane == Lane::Enforced,
        EventKind::Breached { lane, .. } => *lane == Lane::Enforced,
        EventKind::UnknownResolved { reservation, .. } => !left_out.contains(reservation),
        _ => true,
    };
    let enforced = book.events_from(0).filter(|event| is_enforced(&event.kind));
    enforced.map(|event| (event.at_ms, event.revision, event.kind.clone())).collect()
}

fn check_preview(previewed: Option<&Refusal>, answer: &Answer) -> Result<(), String> {
    let refused = match answer {
        Answer::Refused(refusal) => Some(refusal),
        _ => None,
    };
    if previewed == refused {
        return Ok(());
    }
    Err(format!("the preview says {previewed:#?}\nand the entry {answer:#?}"))
}
