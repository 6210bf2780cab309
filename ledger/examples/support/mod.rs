//! What the measurements of memory share; each uses its part of it.
#![allow(dead_code)]

pub mod live;

use std::error::Error;
use std::sync::Arc;

use holdfast_ledger::answer::Answer;
use holdfast_ledger::command::{Command, EntryHeader, PublishPlan, Request, Reserve};
use holdfast_ledger::{Amounts, Book, Plan, ReservationId, Unit};

/// Three levels × two units, and room for everything that is asked.
const PLAN: &str = "
schema: admissionBudget.v1
routes:
  - name: chat
limits:
  global-requests: { scope: global, unit: requests, bucket: { amount: 1000000000, per: 1s } }
  global-tokens: { scope: global, unit: tokens, period: { limit: 1000000000000000, every: 1h } }
  tenant-requests: { scope: tenant, unit: requests, bucket: { amount: 1000000000, per: 1s } }
  tenant-tokens: { scope: tenant, unit: tokens, period: { limit: 1000000000000000, every: 1h } }
  user-requests: { scope: tenant+user, unit: requests, bucket: { amount: 1000000000, per: 1s } }
  user-tokens: { scope: tenant+user, unit: tokens, period: { limit: 1000000000000000, every: 1h } }
";

const BEGIN_MS: u64 = 1_800_000_000_000;

/// A book under [`PLAN`] and the time that it is told.
pub struct Run {
    pub book: Book,
    pub now_ms: u64,
    made: u128,
}

impl Run {
    pub fn new() -> Result<Run, Box<dyn Error>> {
        let mut run = Run { book: Book::new(), now_ms: BEGIN_MS, made: 0 };
        let plan = Plan::parse(PLAN).map_err(|errors| format!("{errors:?}"))?;
        run.apply(&[Command::PublishPlan(PublishPlan {
            expected_generation: None,
            force: false,
            document: PLAN.into(),
            plan: Arc::new(plan),
            actor: "example".parse()?,
        })]);
        Ok(run)
    }

    pub fn apply(&mut self, commands: &[Command]) -> Vec<Answer> {
        let index = self.book.applied().0 + 1;
        let header = EntryHeader { index, term: 1, stamp_ms: self.now_ms, epoch_bounds: Vec::new() };
        let answers = self.book.apply_entry(&header, commands);
        self.book.drain_effects();
        answers
    }

    /// A reserve with a new id.
    pub fn reserve(&mut self, request: Request) -> Reserve {
        self.made += 1;
        let id = ReservationId::from_parts(self.now_ms, self.made);
        Reserve { id, attempt: 1, request, request_digest: [7; 32], key: None }
    }

    /// Lets time pass, with the ticks that a leader proposes each minute.
    pub fn pass(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        while self.now_ms < until_ms {
            self.now_ms = until_ms.min(self.now_ms + 60_000);
            while let Some(Answer::Ticked { more: true, .. }) = self.apply(&[Command::Tick]).first() {}
        }
    }
}

/// What a user asks for.
pub fn request(tenant: u64, user: u64) -> Result<Request, Box<dyn Error>> {
    Ok(Request {
        tenant: format!("tenant-{tenant}").parse()?,
        user: Some(format!("user-{user}").parse()?),
        route: "chat".parse()?,
        model: None,
        region: None,
        amounts: Amounts::NONE.with(Unit::Tokens, 400),
        minimum: Amounts::NONE,
        hold_ttl_ms: None,
    })
}

/// The first argument, or so many.
pub fn count_asked(otherwise: u64) -> Result<u64, Box<dyn Error>> {
    Ok(match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => otherwise,
    })
}

/// Bytes of physical memory that the process holds, by the kernel.
pub fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split_whitespace().nth(1).ok_or("statm has no second field")?.parse()?;
    Ok(pages * 4096)
}
