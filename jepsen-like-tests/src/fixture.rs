//! Small pieces of evidence for the checkers' own tests.

use holdfast_ledger::command::{Command, EntryHeader, Release};
use holdfast_ledger::{Amounts, ReservationId, Unit};

use crate::applied::{AppliedEntry, NodeApplied};
use crate::evidence::NodeAudit;
use crate::history::{Answered, Call, Operation, Outcome, ReceiptFacts, amounts_to_words};

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
        },
        invoked_us,
        returned_us: Some(returned_us),
        outcome: Outcome::Ok,
        code: None,
        revision: Some(random as u64),
        digest: None,
        answered: Some(Answered::Receipt(Box::new(receipt(random as u64)))),
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

fn receipt(revision: u64) -> ReceiptFacts {
    ReceiptFacts {
        state: "RESERVED".into(),
        tenant: "acme".into(),
        user: None,
        route: "chat".into(),
        generation: 1,
        tier: "NORMAL".into(),
        reserved: amounts_to_words(&amounts()),
        legs: vec![],
        reserved_at_ms: AT_MS,
        reserved_revision: revision,
        expires_at_ms: AT_MS + 60_000,
        operation: None,
        started_at_ms: None,
        actual: None,
        ended_at_ms: None,
        ended_revision: None,
        debt: Default::default(),
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
