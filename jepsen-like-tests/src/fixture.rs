//! Small pieces of evidence for the checkers' own tests.

use std::sync::Arc;

use holdfast_ledger::command::{Command, EntryHeader, PublishPlan, Release, Request, Reserve, Start};
use holdfast_ledger::ids::{ActorName, OperationId, RouteName, TenantId};
use holdfast_ledger::{Amounts, Book, Plan, ReservationId, Unit};

use crate::applied::{AppliedEntry, NodeApplied};
use crate::evidence::NodeAudit;
use crate::history::{Answered, Call, Operation, Outcome, ReceiptFacts, amounts_to_words};
use crate::workload::{PlanShape, document};

/// What every reservation made here holds.
pub(crate) const TOKENS: u64 = 25;

/// When every reservation made here was made, ms.
pub(crate) const AT_MS: u64 = 1_800_000_000_000;

pub(crate) fn id(random: u128) -> ReservationId {
    ReservationId::from_parts(AT_MS, random)
}

pub(crate) fn amounts() -> Amounts {
    Amounts::NONE.with(Unit::Tokens, TOKENS)
}

/// An acknowledged reserve whose revision is its id's random part.
pub(crate) fn reserve(client: u32, invoked_us: u64, returned_us: u64, random: u128) -> Operation {
    Operation {
        client,
        id: id(random).to_string(),
        call: Call::Reserve {
            tenant: "acme".into(),
            user: None,
            route: "chat".into(),
            amounts: amounts_to_words(&amounts()),
            minimum: Default::default(),
            key: None,
        },
        invoked_us,
        returned_us: Some(returned_us),
        outcome: Outcome::Ok,
        code: None,
        revision: Some(random as u64),
        digest: None,
        answered: Some(Answered::Receipt(Box::new(receipt(random)))),
    }
}

/// An acknowledged read that found the reservation as it was admitted.
pub(crate) fn get(client: u32, invoked_us: u64, returned_us: u64, random: u128) -> Operation {
    Operation { call: Call::Get, ..reserve(client, invoked_us, returned_us, random) }
}

/// A read that found nothing.
pub(crate) fn absent(client: u32, invoked_us: u64, returned_us: u64, random: u128) -> Operation {
    Operation { answered: Some(Answered::Absent), ..get(client, invoked_us, returned_us, random) }
}

pub(crate) fn receipt_mut(operation: &mut Operation) -> &mut ReceiptFacts {
    match &mut operation.answered {
        Some(Answered::Receipt(receipt)) => receipt,
        other => panic!("the fixture has no receipt: {other:?}"),
    }
}

fn receipt(random: u128) -> ReceiptFacts {
    ReceiptFacts {
        id: id(random).to_string(),
        state: "RESERVED".into(),
        tenant: "acme".into(),
        user: None,
        route: "chat".into(),
        generation: 1,
        tier: "NORMAL".into(),
        reserved: amounts_to_words(&amounts()),
        legs: vec![],
        reserved_at_ms: AT_MS,
        reserved_revision: random as u64,
        expires_at_ms: AT_MS + 60_000,
        operation: None,
        started_at_ms: None,
        actual: None,
        ended_at_ms: None,
        ended_revision: None,
        debt: Default::default(),
        extras: Default::default(),
    }
}

/// An entry that releases these ids.
pub(crate) fn entry(index: u64, term: u64, revision_before: u64, ids: &[u128]) -> AppliedEntry {
    AppliedEntry {
        header: EntryHeader { index, term, stamp_ms: AT_MS, epoch_bounds: vec![] },
        revision_before,
        commands: ids.iter().map(|random| Command::Release(Release { id: id(*random) })).collect(),
        digest: 0,
    }
}

pub(crate) fn node(node: u64, entries: Vec<AppliedEntry>) -> NodeApplied {
    NodeApplied { node, entries }
}

pub(crate) fn audit(node: u64, revision: u64) -> NodeAudit {
    NodeAudit { node, revision, digest: "aa".into(), violations: vec![] }
}

/// A true story: commands that a real book applied, and clients that were told its answers. Tests
/// falsify one thing in it.
pub(crate) struct Story {
    pub(crate) entries: Vec<AppliedEntry>,
    pub(crate) operations: Vec<Operation>,
    book: Book,
}

const WELL_FORMED: &str = "the fixture's names and documents are well formed";
const STORY_ROUTE: &str = "chat.generate";

impl Story {
    /// A plan is published, one reservation is made, and it is started.
    pub(crate) fn of_one_reservation() -> Story {
        let mut story = Story { entries: vec![], operations: vec![], book: Book::new() };
        let document =
            document(PlanShape { hold_ttl_ms: 60_000, usage_deadline_ms: 60_000, slots_per_tenant: 5 });
        let publish = PublishPlan {
            expected_generation: None,
            force: false,
            plan: Arc::new(Plan::parse(&document).expect(WELL_FORMED)),
            document: document.as_str().into(),
            actor: ActorName::new("fixture").expect(WELL_FORMED),
        };
        story.tell("", Call::Publish { document }, Command::PublishPlan(publish));
        let request = Request {
            tenant: TenantId::new("acme").expect(WELL_FORMED),
            user: None,
            route: RouteName::new(STORY_ROUTE).expect(WELL_FORMED),
            model: None,
            region: None,
            amounts: amounts(),
            minimum: Amounts::NONE,
            hold_ttl_ms: None,
        };
        let request_digest = request.digest();
        let reserve = Command::Reserve(Reserve { id: id(7), attempt: 1, request, request_digest, key: None });
        let call = Call::Reserve {
            tenant: "acme".into(),
            user: None,
            route: STORY_ROUTE.into(),
            amounts: amounts_to_words(&amounts()),
            minimum: Default::default(),
            key: None,
        };
        story.tell(&id(7).to_string(), call, reserve);
        let operation = OperationId::new("op").expect(WELL_FORMED);
        let start = Command::Start(Start { id: id(7), operation });
        story.tell(&id(7).to_string(), Call::Start { operation: "op".into() }, start);
        story
    }

    fn tell(&mut self, id: &str, call: Call, command: Command) {
        let answered = self.append(vec![command]);
        let at_us = self.operations.len() as u64 * 100;
        self.operations.push(Operation {
            client: 1,
            id: id.to_owned(),
            call,
            invoked_us: at_us,
            returned_us: Some(at_us + 50),
            outcome: Outcome::Ok,
            code: None,
            revision: Some(self.book.revision()),
            digest: None,
            answered,
        });
    }

    /// Another entry.
    pub(crate) fn append(&mut self, commands: Vec<Command>) -> Option<Answered> {
        // The tests that take entries away and put others there start from what is left.
        self.book = Book::new();
        for entry in &self.entries {
            self.book.apply_entry(&entry.header, &entry.commands);
        }
        let revision_before = self.book.revision();
        let header = EntryHeader {
            index: self.entries.len() as u64 + 1,
            term: 1,
            stamp_ms: AT_MS + self.entries.len() as u64,
            epoch_bounds: vec![],
        };
        let answers = self.book.apply_entry(&header, &commands);
        self.entries.push(AppliedEntry { header, revision_before, commands, digest: self.book.digest() });
        answers.last().and_then(Answered::of)
    }

    /// The book at the end of the story.
    pub(crate) fn book(&self) -> &Book {
        &self.book
    }

    /// Adds a read of the reservation, as it stands.
    pub(crate) fn read_as_it_is(&mut self) {
        let receipt = self.book.reservation(id(7), self.book.clock_ms()).expect("the story reserved it");
        let mut read = get(2, 1_000, 1_050, 7);
        read.revision = Some(self.book.revision());
        read.answered = Some(Answered::Receipt(Box::new(ReceiptFacts::of(&receipt))));
        self.operations.push(read);
    }

    /// What the only node applied.
    pub(crate) fn applied(&self) -> Vec<NodeApplied> {
        vec![node(1, self.entries.clone())]
    }
}
