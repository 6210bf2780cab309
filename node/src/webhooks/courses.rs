//! What is due for which webhook, and when: no I/O, no clock of its own.

use std::collections::{BTreeMap, VecDeque};

use holdfast_ledger::ids::TenantId;

use crate::limits::{
    WEBHOOK_CURSOR_LAG_MAX, WEBHOOK_PAUSE_MS_MAX, WEBHOOK_PAUSE_MS_MIN, WEBHOOKS_UNDER_WAY_MAX,
};

/// One webhook's way through its tenant's events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Course {
    /// Numbers of events that are still to be delivered, in order.
    waiting: VecDeque<u64>,
    /// Everything up to here is delivered.
    delivered: u64,
    /// The cursor that the book has, as far as it was told.
    recorded: u64,
    /// Events of these numbers are not kept any more, and some may have been this tenant's.
    missed: Option<(u64, u64)>,
    under_way: bool,
    failures: u32,
    problem: Option<String>,
    /// Nothing is tried before, ms.
    due_ms: u64,
}

impl Course {
    /// Something waits and nothing is under way.
    fn is_idle(&self) -> bool {
        !self.under_way && !self.waiting.is_empty()
    }
}

/// An event to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) tenant: TenantId,
    pub(super) sequence: u64,
    /// Events that were forgotten before they could be sent, first and last number.
    pub(super) missed: Option<(u64, u64)>,
}

/// All webhooks' ways.
#[derive(Clone, Debug, Default)]
pub(super) struct Courses {
    courses: BTreeMap<TenantId, Course>,
    /// The number of the last event that was looked at.
    seen: u64,
    under_way: usize,
}

impl Courses {
    /// Begins anew at the cursors that the book has. `first_kept` is the number of the first event that is kept: from
    /// there on events are to be told with [`Courses::on_event`], wherever the cursors are.
    pub(super) fn begin(cursors: impl Iterator<Item = (TenantId, u64)>, first_kept: u64) -> Courses {
        let mut courses = Courses { seen: first_kept.saturating_sub(1), ..Courses::default() };
        for (tenant, cursor) in cursors {
            courses.add(tenant, cursor, first_kept);
        }
        courses
    }

    fn add(&mut self, tenant: TenantId, cursor: u64, first_kept: u64) {
        let missed = (cursor + 1 < first_kept).then(|| (cursor + 1, first_kept - 1));
        let course = Course { delivered: cursor, recorded: cursor, missed, ..Course::default() };
        self.courses.insert(tenant, course);
    }

    /// The number of the last event that was looked at.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// A webhook is there, or is there no more.
    pub(super) fn on_webhook(&mut self, tenant: &TenantId, cursor: Option<u64>) {
        match (cursor, self.courses.contains_key(tenant)) {
            (Some(cursor), false) => self.add(tenant.clone(), cursor, cursor + 1),
            (Some(_), true) => self.retry(tenant),
            (None, _) => {
                if let Some(course) = self.courses.remove(tenant) {
                    self.under_way -= usize::from(course.under_way);
                }
            }
        }
    }

    /// Another address or key: it is tried at once.
    fn retry(&mut self, tenant: &TenantId) {
        if let Some(course) = self.courses.get_mut(tenant) {
            (course.failures, course.due_ms) = (0, 0);
        }
    }

    /// The next event, and the tenant that it is about.
    pub(super) fn on_event(&mut self, sequence: u64, tenant: Option<&TenantId>) {
        self.seen = self.seen.max(sequence);
        let course = tenant.and_then(|tenant| self.courses.get_mut(tenant));
        if let Some(course) = course.filter(|course| sequence > course.delivered) {
            course.waiting.push_back(sequence);
        }
    }

    /// What is to be sent now, each webhook one event at a time. All of it counts as under way.
    pub(super) fn take_due(&mut self, now_ms: u64) -> Vec<Due> {
        let mut idle: Vec<(&TenantId, &mut Course)> = self.courses.iter_mut().collect();
        idle.retain(|(_, course)| course.is_idle() && course.due_ms <= now_ms);
        // Whoever has not failed goes before those that are tried again, and among those the longest overdue.
        idle.sort_by_key(|(_, course)| course.due_ms);
        idle.truncate(WEBHOOKS_UNDER_WAY_MAX.saturating_sub(self.under_way));
        let mut due = Vec::new();
        for (tenant, course) in idle {
            let Some(sequence) = course.waiting.front().copied() else { continue };
            course.under_way = true;
            due.push(Due { tenant: tenant.clone(), sequence, missed: course.missed });
        }
        self.under_way += due.len();
        due
    }

    /// When something is due next, ms; `None`: nothing waits for the time.
    pub(super) fn next_due_ms(&self) -> Option<u64> {
        if self.under_way >= WEBHOOKS_UNDER_WAY_MAX {
            return None;
        }
        self.courses.values().filter(|course| course.is_idle()).map(|course| course.due_ms).min()
    }

    /// An event was taken by its receiver.
    pub(super) fn on_delivered(&mut self, tenant: &TenantId, sequence: u64) {
        let Some(course) = self.ended(tenant) else { return };
        course.waiting.retain(|waiting| *waiting > sequence);
        course.delivered = course.delivered.max(sequence);
        (course.failures, course.problem, course.missed, course.due_ms) = (0, None, None, 0);
    }

    /// An event is not kept any more: it was missed.
    pub(super) fn on_forgotten(&mut self, tenant: &TenantId, sequence: u64) {
        let Some(course) = self.ended(tenant) else { return };
        course.waiting.retain(|waiting| *waiting > sequence);
        let first = course.missed.map_or(sequence, |(first, _)| first);
        course.missed = Some((first, sequence));
    }

    /// It was not taken. It is tried again after a pause that doubles each time, shortened by up to half at random
    /// (`random` of 2^32) so that the webhooks of one host do not come back together.
    pub(super) fn on_failed(&mut self, tenant: &TenantId, problem: String, now_ms: u64, random: u32) {
        let Some(course) = self.ended(tenant) else { return };
        let doubled = WEBHOOK_PAUSE_MS_MIN << course.failures.min(16);
        let pause_ms = doubled.min(WEBHOOK_PAUSE_MS_MAX);
        let shorter_ms = ((pause_ms / 2) * u64::from(random)) >> 32;
        course.failures += 1;
        course.problem = Some(problem);
        course.due_ms = now_ms + pause_ms - shorter_ms;
    }

    fn ended(&mut self, tenant: &TenantId) -> Option<&mut Course> {
        let course = self.courses.get_mut(tenant).filter(|course| course.under_way)?;
        course.under_way = false;
        self.under_way -= 1;
        Some(course)
    }

    /// Cursors that the book should be told of: of what was delivered, and of webhooks that have had nothing to
    /// deliver for so long that their cursor would fall behind the events that are kept.
    pub(super) fn to_record(&self) -> Vec<(TenantId, u64)> {
        let cursors = self.courses.iter().filter_map(|(tenant, course)| {
            // Nothing waits: everything that was seen is delivered or another's.
            let reached = match course.waiting.front() {
                Some(next) => next - 1,
                None => self.seen,
            };
            let lags = reached.saturating_sub(course.recorded) >= WEBHOOK_CURSOR_LAG_MAX;
            (course.delivered > course.recorded || lags).then(|| (tenant.clone(), reached))
        });
        cursors.collect()
    }

    /// The book was told.
    pub(super) fn on_recorded(&mut self, cursors: &[(TenantId, u64)]) {
        for (tenant, cursor) in cursors {
            if let Some(course) = self.courses.get_mut(tenant) {
                course.recorded = course.recorded.max(*cursor);
                course.delivered = course.delivered.max(*cursor);
            }
        }
    }

    /// Failures one after the other and the last problem, by tenant, where there are some.
    pub(super) fn problems(&self) -> BTreeMap<TenantId, (u32, String)> {
        let failing = self.courses.iter().filter_map(|(tenant, course)| {
            let problem = course.problem.clone()?;
            Some((tenant.clone(), (course.failures, problem)))
        });
        failing.collect()
    }

    /// The number of the first event that waits for any webhook.
    pub(super) fn oldest_waiting(&self) -> Option<u64> {
        self.courses.values().filter_map(|course| course.waiting.front().copied()).min()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tenant(name: &str) -> TenantId {
        name.parse().unwrap()
    }

    fn sequences(due: &[Due]) -> Vec<(String, u64)> {
        due.iter().map(|due| (due.tenant.to_string(), due.sequence)).collect()
    }

    /// Webhooks of acme and beta, and events 1 to 6 of acme, nobody, beta, acme, beta, acme.
    fn two() -> Courses {
        let (acme, beta) = (tenant("acme"), tenant("beta"));
        let mut courses = Courses::begin([(acme.clone(), 0), (beta.clone(), 3)].into_iter(), 1);
        for (sequence, about) in [
            (1, Some(&acme)),
            (2, None),
            (3, Some(&beta)),
            (4, Some(&acme)),
            (5, Some(&beta)),
            (6, Some(&acme)),
        ] {
            courses.on_event(sequence, about);
        }
        courses
    }

    #[test]
    fn each_webhook_has_its_events_in_order_and_one_at_a_time() {
        let mut courses = two();
        assert_eq!(sequences(&courses.take_due(0)), [("acme".into(), 1), ("beta".into(), 5)]);
        assert_eq!(courses.take_due(0), []);
        courses.on_delivered(&tenant("acme"), 1);
        assert_eq!(sequences(&courses.take_due(0)), [("acme".into(), 4)]);
        // What was delivered of acme: up to the event before the next one. Nothing of beta yet.
        assert_eq!(courses.to_record(), [(tenant("acme"), 3)]);
        courses.on_delivered(&tenant("beta"), 5);
        assert_eq!(courses.to_record(), [(tenant("acme"), 3), (tenant("beta"), 6)]);
        courses.on_recorded(&[(tenant("acme"), 3), (tenant("beta"), 6)]);
        assert_eq!(courses.to_record(), []);
    }

    #[test]
    fn a_webhook_that_fails_is_tried_again_later_and_holds_up_nobody() {
        let (acme, mut courses) = (tenant("acme"), two());
        let mut now_ms = 0;
        let mut pauses = Vec::new();
        for failures in 1..=12 {
            let due = courses.take_due(now_ms);
            assert!(sequences(&due).contains(&("acme".into(), 1)), "{due:?}");
            courses.on_failed(&acme, "status 500".into(), now_ms, 0);
            assert_eq!(courses.problems()[&acme], (failures, "status 500".into()));
            courses.on_delivered(&tenant("beta"), 5);
            let due_ms = courses.next_due_ms().unwrap();
            assert_eq!(courses.take_due(due_ms - 1), []);
            pauses.push(due_ms - now_ms);
            now_ms = due_ms;
        }
        assert_eq!(pauses[..4], [1_000, 2_000, 4_000, 8_000]);
        assert_eq!(pauses.last(), Some(&WEBHOOK_PAUSE_MS_MAX));
        // At random up to half as long, and at once after the address was changed.
        courses.take_due(now_ms);
        courses.on_failed(&acme, "status 500".into(), now_ms, u32::MAX);
        let pause_ms = courses.next_due_ms().unwrap() - now_ms;
        assert!((WEBHOOK_PAUSE_MS_MAX / 2..WEBHOOK_PAUSE_MS_MAX).contains(&pause_ms), "{pause_ms}");
        courses.on_webhook(&acme, Some(0));
        assert_eq!(sequences(&courses.take_due(now_ms)), [("acme".into(), 1)]);
        courses.on_delivered(&acme, 1);
        assert!(courses.problems().is_empty());
    }

    #[test]
    fn what_is_not_kept_any_more_is_told_with_the_next_delivery() {
        let mut courses = Courses::begin([(tenant("acme"), 10)].into_iter(), 51);
        courses.on_event(51, Some(&tenant("acme")));
        let due = courses.take_due(0);
        assert_eq!(due[0].missed, Some((11, 50)));
        courses.on_delivered(&tenant("acme"), 51);
        courses.on_event(52, Some(&tenant("acme")));
        assert_eq!(courses.take_due(0)[0].missed, None);
    }

    #[test]
    fn a_webhook_without_events_is_recorded_before_its_cursor_is_out_of_sight() {
        let mut courses = Courses::begin([(tenant("acme"), 0)].into_iter(), 1);
        for sequence in 1..WEBHOOK_CURSOR_LAG_MAX {
            courses.on_event(sequence, None);
        }
        assert_eq!(courses.to_record(), []);
        courses.on_event(WEBHOOK_CURSOR_LAG_MAX, None);
        assert_eq!(courses.to_record(), [(tenant("acme"), WEBHOOK_CURSOR_LAG_MAX)]);
    }

    #[test]
    fn no_more_are_under_way_than_may_be_and_those_that_failed_come_last() {
        let names: Vec<TenantId> =
            (0..WEBHOOKS_UNDER_WAY_MAX + 5).map(|i| tenant(&format!("t{i:03}"))).collect();
        let mut courses = Courses::begin(names.iter().map(|name| (name.clone(), 0)), 1);
        for (sequence, name) in (1..).zip(&names) {
            courses.on_event(sequence, Some(name));
        }
        let first = courses.take_due(0);
        assert_eq!(first.len(), WEBHOOKS_UNDER_WAY_MAX);
        assert_eq!(courses.next_due_ms(), None, "nothing can be begun");
        for due in &first {
            courses.on_failed(&due.tenant, "time-out".into(), 0, 0);
        }
        let second = courses.take_due(1_000_000);
        assert_eq!(
            second[..5].iter().map(|due| due.tenant.clone()).collect::<Vec<_>>(),
            names[first.len()..]
        );
        // A webhook that is gone gives its place back.
        courses.on_webhook(&second[0].tenant, None);
        assert_eq!(courses.take_due(1_000_000).len(), 1);
    }
}
