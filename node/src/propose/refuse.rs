//! Refusing from applied state: what the book refuses anyway needs no log entry, so that a storm of refusals
//! neither grows the log nor slows what is admitted.
//!
//! It only ever refuses, and only a caller's first attempt (a later one may meet an earlier one that is still
//! on its way), only if no proposal of that id is under way here, and only by a book that has been shown, after
//! the call came in, to have everything that was acknowledged before: the caller of [`Refuser::refuse`] waits
//! for a round of the quorum first, which all who wait share.
//!
//! Looking costs about as much as applying. So only scopes are looked at whose requests were refused of late:
//! the first refusal of a scope goes through the log, and tells where to look.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_ledger::answer::Refusal;
use holdfast_ledger::command::{Request, Reserve};
use holdfast_ledger::plan::Level;
use holdfast_ledger::{Answer, Book, Command, ReservationId};

use crate::raft::limits::{REFUSING_SCOPES_MAX, RELENT_AFTER};

/// A refusal that no log entry stands behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// The last revision that was applied when it was decided.
    pub revision: u64,
    /// The instant it was decided for, ms.
    pub at_ms: u64,
}

/// What is known of refusals and of what is under way on one node.
#[derive(Debug, Default)]
pub(crate) struct Refuser {
    /// Ids of the reserves that were proposed and are not answered, and how often each.
    under_way: Mutex<HashMap<ReservationId, u32>>,
    /// Scopes that refused of late, by their hash, each with how many admissible requests it may still meet.
    scopes: Mutex<HashMap<u64, u8>>,
    /// How many scopes there are: without any, nothing is looked at.
    refusing: AtomicUsize,
}

/// The reserves of one proposal, under way until this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    refuser: Arc<Refuser>,
    ids: Vec<ReservationId>,
}

impl Refuser {
    /// The reserves among these commands are under way from now on.
    pub(super) fn begin(self: &Arc<Self>, commands: &[Command]) -> UnderWay {
        let ids: Vec<_> = commands.iter().filter_map(|command| Some(reserve_of(command)?.id)).collect();
        if !ids.is_empty() {
            let mut under_way = lock(&self.under_way);
            ids.iter().for_each(|id| *under_way.entry(*id).or_default() += 1);
        }
        UnderWay { refuser: Arc::clone(self), ids }
    }

    /// Learns from the answers to commands which scopes refuse.
    pub(crate) fn note(&self, commands: &[Command], answers: &[Answer]) {
        for (command, answer) in commands.iter().zip(answers) {
            if let (Some(reserve), Answer::Refused(refusal)) = (reserve_of(command), answer) {
                self.suspect(&reserve.request, refusal);
            }
        }
    }

    fn suspect(&self, request: &Request, refusal: &Refusal) {
        let level = match refusal {
            Refusal::Rejected(rejection) => rejection.level,
            // What is wrong with the request itself says nothing of the next one's.
            _ => return,
        };
        let mut scopes = lock(&self.scopes);
        if scopes.len() >= REFUSING_SCOPES_MAX {
            // They come back with their next refusals.
            scopes.clear();
        }
        scopes.insert(scope(level, request), RELENT_AFTER);
        self.refusing.store(scopes.len(), Ordering::Release);
    }

    /// Places of the commands that are worth a look.
    pub(crate) fn suspects(&self, commands: &[Command]) -> Vec<usize> {
        if self.refusing.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let scopes = lock(&self.scopes);
        let is_suspect = |command: &Command| {
            reserve_of(command).is_some_and(|reserve| {
                reserve.attempt == 1 && scopes_of(&reserve.request).any(|scope| scopes.contains_key(&scope))
            })
        };
        let places = commands.iter().enumerate().filter(|(_, command)| is_suspect(command));
        places.map(|(place, _)| place).collect()
    }

    /// What the book as it is refuses of these commands, by their places.
    pub(crate) fn refuse(
        &self,
        book: &Book,
        commands: &[Command],
        places: &[usize],
        at_ms: u64,
    ) -> Vec<(usize, Refused)> {
        let revision = book.revision();
        let mut refused = Vec::new();
        for place in places {
            let Some(reserve) = commands.get(*place).and_then(reserve_of) else { continue };
            // Asked before the book is: what is not under way now has left its trace there.
            if lock(&self.under_way).contains_key(&reserve.id) {
                continue;
            }
            match book.preview(reserve, at_ms) {
                // An entry would bring along the bounds that the book lacks; and a ceiling is the log's to see.
                Some(Refusal::Overloaded { .. }) => {}
                Some(refusal) => {
                    self.suspect(&reserve.request, &refusal);
                    refused.push((*place, Refused { refusal, revision, at_ms }));
                }
                None => self.relent(&reserve.request),
            }
        }
        refused
    }

    /// A scope that would admit a request is looked at some more times, and then no more.
    fn relent(&self, request: &Request) {
        let mut scopes = lock(&self.scopes);
        for scope in scopes_of(request) {
            if let Some(left) = scopes.get_mut(&scope) {
                *left -= 1;
                if *left == 0 {
                    scopes.remove(&scope);
                }
            }
        }
        self.refusing.store(scopes.len(), Ordering::Release);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.ids.is_empty() {
            return;
        }
        let mut under_way = lock(&self.refuser.under_way);
        for id in &self.ids {
            if let Some(count) = under_way.get_mut(id) {
                *count -= 1;
                if *count == 0 {
                    under_way.remove(id);
                }
            }
        }
    }
}

fn reserve_of(command: &Command) -> Option<&Reserve> {
    match command {
        Command::Reserve(reserve) => Some(reserve),
        _ => None,
    }
}

fn scopes_of(request: &Request) -> impl Iterator<Item = u64> + '_ {
    [Level::Global, Level::Tenant, Level::User].into_iter().map(move |level| scope(level, request))
}

/// The hash of whom a refusal at a level concerns. Two scopes with one hash cost a look in vain.
fn scope(level: Level, request: &Request) -> u64 {
    let mut hash = DefaultHasher::new();
    (level as u8).hash(&mut hash);
    if level >= Level::Tenant {
        request.tenant.hash(&mut hash);
    }
    if level == Level::User {
        request.user.hash(&mut hash);
    }
    hash.finish()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use holdfast_ledger::answer::{Reason, Rejection};
    use holdfast_ledger::command::{EntryHeader, PublishPlan};
    use holdfast_ledger::{Amounts, Plan, Unit};

    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;
    const PLAN: &str = "schema: admissionBudget.v1\nroutes:\n  - name: chat\nlimits:\n  t:\n    scope: tenant\n    unit: tokens\n    period: { limit: 10, every: 1h }\n";

    fn reserve(number: u128, tenant: &str, tokens: u64, attempt: u32) -> Command {
        let request = Request {
            tenant: tenant.parse().unwrap(),
            user: Some("u".parse().unwrap()),
            route: "chat".parse().unwrap(),
            model: None,
            region: None,
            amounts: Amounts::NONE.with(Unit::Tokens, tokens),
            minimum: Amounts::NONE,
            hold_ttl_ms: None,
        };
        let request_digest = request.digest();
        let id = ReservationId::from_parts(NOW_MS, number);
        Command::Reserve(Reserve { id, attempt, request, request_digest, key: None })
    }

    fn book() -> Book {
        let mut book = Book::new();
        let plan = Arc::new(Plan::parse(PLAN).unwrap());
        let actor = "ops".parse().unwrap();
        let publish =
            PublishPlan { expected_generation: None, force: false, document: PLAN.into(), plan, actor };
        let header = EntryHeader { index: 1, term: 1, stamp_ms: NOW_MS, epoch_bounds: Vec::new() };
        book.apply_entry(&header, &[Command::PublishPlan(publish)]);
        book
    }

    fn rejected(level: Level) -> Answer {
        Answer::Refused(Refusal::Rejected(Rejection {
            generation: 1,
            limit: "t".parse().unwrap(),
            level,
            unit: Unit::Tokens,
            reason: Reason::Spent,
            reset_at_ms: None,
            retry_after_ms: None,
        }))
    }

    #[test]
    fn nothing_is_looked_at_before_something_was_refused() {
        let refuser = Refuser::default();
        assert_eq!(refuser.suspects(&[reserve(1, "acme", 11, 1)]), Vec::<usize>::new());
        refuser.note(&[reserve(1, "acme", 11, 1)], &[rejected(Level::Tenant)]);
        let commands = [
            reserve(2, "acme", 1, 1),
            reserve(3, "other", 1, 1),
            Command::Tick,
            reserve(4, "acme", 1, 2),
            reserve(5, "acme", 1, 1),
        ];
        assert_eq!(refuser.suspects(&commands), [0, 4], "not other tenants, and not later attempts");
    }

    #[test]
    fn only_what_the_book_refuses_is_refused_and_a_scope_that_admits_is_let_go() {
        let (refuser, book) = (Refuser::default(), book());
        refuser.note(&[reserve(1, "acme", 11, 1)], &[rejected(Level::Tenant)]);
        let commands = [reserve(2, "acme", 11, 1), reserve(3, "acme", 10, 1)];
        let refused = refuser.refuse(&book, &commands, &[0, 1], NOW_MS);
        assert_eq!(refused.len(), 1);
        assert_eq!((refused[0].0, refused[0].1.revision, refused[0].1.at_ms), (0, 1, NOW_MS));
        for _ in 1..RELENT_AFTER {
            assert_eq!(refuser.suspects(&commands).len(), 2);
            assert_eq!(refuser.refuse(&book, &commands, &[1], NOW_MS), []);
        }
        assert_eq!(refuser.suspects(&commands), Vec::<usize>::new());
    }

    #[test]
    fn what_is_under_way_is_not_refused() {
        let (refuser, book) = (Arc::new(Refuser::default()), book());
        let commands = [reserve(2, "acme", 11, 1)];
        let (first, second) = (refuser.begin(&commands), refuser.begin(&commands));
        assert_eq!(refuser.refuse(&book, &commands, &[0], NOW_MS), []);
        drop(first);
        assert_eq!(refuser.refuse(&book, &commands, &[0], NOW_MS), [], "it was proposed twice");
        drop(second);
        assert_eq!(refuser.refuse(&book, &commands, &[0], NOW_MS).len(), 1);
        assert!(lock(&refuser.under_way).is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let refuser = Refuser::default();
        for number in 0..=REFUSING_SCOPES_MAX {
            let command = reserve(1, &format!("t{number}"), 11, 1);
            refuser.note(&[command], &[rejected(Level::Tenant)]);
        }
        assert_eq!(refuser.refusing.load(Ordering::Acquire), 1);
    }
}
