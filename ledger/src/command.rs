//! What can be asked of the book.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::adjust::Adjust;
use crate::ids::{
    ActorName, IdempotencyKey, ModelName, OperationId, RegionName, ReservationId, RouteName, TenantId, UserId,
};
use crate::plan::{Calendar, Plan, TenantRecord};
use crate::record::FreezeScope;
use crate::unit::{Amounts, Unit};
use crate::webhook::Webhook;

/// What a log entry says of itself: where it stands and when it was stamped.
/// Everything `apply` may depend on besides the book and the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryHeader {
    /// Raft log index.
    pub index: u64,
    /// Raft term of the leader that wrote it.
    pub term: u64,
    /// The leader's stamp, ms since the Unix epoch. The book's clock is max(previous, stamp).
    pub stamp_ms: u64,
    /// Bounds of epochs that the leader computed because the book's own run out soon.
    pub epoch_bounds: Vec<EpochBounds>,
}

/// Consecutive bounds of one calendar: epoch i is `[bounds_ms[i], bounds_ms[i+1])`.
/// Computed by the leader, since time zone data differs between machines; `apply` checks order only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochBounds {
    /// The calendar.
    pub calendar: Arc<Calendar>,
    /// At least two instants, strictly increasing. The first is the start of an epoch that the book
    /// already knows the end of, or of the calendar's first epoch.
    pub bounds_ms: Vec<u64>,
}

/// One command. The book's revision grows by one for each, whatever the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Hold amounts on every limit that applies, or on none.
    Reserve(Reserve),
    /// RESERVED → STARTED, binding an operation id.
    Start(Start),
    /// End a started reservation with its actual amounts.
    Settle(Settle),
    /// End a reservation that was not started, or leave a tombstone for an id never seen.
    Release(Release),
    /// Put the usage of an estimated settlement right, once, by the operation's receipt.
    Correct(Correct),
    /// Extend the hold TTL or the usage deadline.
    Renew(Renew),
    /// The gateway lost sight of the operation: STARTED → USAGE_UNKNOWN.
    ReportUnknown(ReportUnknown),
    /// An operator says what an operation used that nobody else knows of: USAGE_UNKNOWN ends.
    ResolveUnknown(ResolveUnknown),
    /// Publish a plan.
    PublishPlan(PublishPlan),
    /// A publish in the log whose document no node of these rules can read. Never proposed.
    UnreadablePlan(UnreadablePlan),
    /// Publish the content of an earlier generation again.
    RollBack(RollBack),
    /// Set or remove a tenant's record.
    SetTenant(SetTenant),
    /// An operator stops admissions for a subject and route.
    Freeze(Freeze),
    /// Lift a freeze.
    Unfreeze(Unfreeze),
    /// Book an operator's adjustment.
    Adjust(Box<Adjust>),
    /// Set or remove the webhook of a tenant.
    SetWebhook(SetWebhook),
    /// A webhook was served up to an event. Proposed by the leader.
    AdvanceWebhook(AdvanceWebhook),
    /// Do timer work that is due: expiry, usage deadlines, forgetting. Proposed by the leader.
    Tick,
    /// Raise the rules version, once all members announce support. Proposed by the leader.
    RaiseRules {
        /// The version to raise to; lower ones change nothing.
        rules_version: u32,
    },
}

impl Command {
    /// The reservation that it is about; `None` for plans, records and what concerns no single one.
    pub fn reservation(&self) -> Option<ReservationId> {
        match self {
            Command::Reserve(reserve) => Some(reserve.id),
            Command::Start(start) => Some(start.id),
            Command::Settle(settle) => Some(settle.id),
            Command::Release(release) => Some(release.id),
            Command::Correct(correct) => Some(correct.id),
            Command::Renew(renew) => Some(renew.id),
            Command::ReportUnknown(report) => Some(report.id),
            Command::ResolveUnknown(resolve) => Some(resolve.id),
            Command::PublishPlan(_)
            | Command::UnreadablePlan(_)
            | Command::RollBack(_)
            | Command::SetTenant(_)
            | Command::Freeze(_)
            | Command::Unfreeze(_)
            | Command::Adjust(_)
            | Command::SetWebhook(_)
            | Command::AdvanceWebhook(_)
            | Command::Tick
            | Command::RaiseRules { .. } => None,
        }
    }
}

/// What a reservation is for. Its canonical bytes give the request digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who pays.
    pub tenant: TenantId,
    /// The user within the tenant; limits of the user level apply only with one.
    pub user: Option<UserId>,
    /// What it does.
    pub route: RouteName,
    /// The model it names.
    pub model: Option<ModelName>,
    /// Where it is served.
    pub region: Option<RegionName>,
    /// How much per unit. `requests` and `slots` default to 1.
    pub amounts: Amounts,
    /// The least that will do, of units of which less than asked may be granted; a unit that is absent is
    /// granted in full or not at all.
    pub minimum: Amounts,
    /// Hold TTL, ms; `None`: the route's.
    pub hold_ttl_ms: Option<u64>,
}

impl Request {
    /// The amounts with the defaults of `requests` and `slots` filled in.
    pub fn amounts_asked(&self) -> Amounts {
        let mut amounts = self.amounts;
        for unit in [Unit::Requests, Unit::Slots] {
            if amounts.get(unit).is_none() {
                amounts.set(unit, Some(1));
            }
        }
        amounts
    }

    /// What has to fit: of each unit the minimum if there is one, else what is asked.
    pub fn amounts_least(&self) -> Amounts {
        let mut amounts = self.amounts_asked();
        for (unit, least) in self.minimum.iter() {
            amounts.set(unit, Some(least));
        }
        amounts
    }

    /// SHA-256 over the canonical request: every field that decides what is admitted, each with its length
    /// or presence, so that no two requests share their bytes. Defaults are filled in: leaving out
    /// `requests` and asking for 1 is the same request, and so is a minimum of all that is asked.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"holdfast.request.v1");
        let names = [
            Some(self.tenant.as_str()),
            self.user.as_ref().map(UserId::as_str),
            Some(self.route.as_str()),
            self.model.as_ref().map(ModelName::as_str),
            self.region.as_ref().map(RegionName::as_str),
        ];
        for name in names {
            match name {
                None => hash.update([0]),
                Some(text) => {
                    hash.update([1]);
                    hash.update((text.len() as u64).to_le_bytes());
                    hash.update(text);
                }
            }
        }
        let amounts = self.amounts_asked();
        let mut put = |amount: Option<u64>| match amount {
            None => hash.update([0]),
            Some(amount) => {
                hash.update([1]);
                hash.update(amount.to_le_bytes());
            }
        };
        Unit::ALL.iter().for_each(|unit| put(amounts.get(*unit)));
        put(self.hold_ttl_ms);
        if self.amounts_least() != amounts {
            // Last and only where it says something: the bytes before it end by themselves.
            let below =
                |unit: &Unit| self.minimum.get(*unit).filter(|least| amounts.get(*unit) != Some(*least));
            Unit::ALL.iter().for_each(|unit| put(below(unit)));
        }
        hash.finalize().into()
    }
}

/// See [`Command::Reserve`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// The caller's id for it.
    pub id: ReservationId,
    /// 1 for the first try, counting up: only attempt 1 may be refused without a log entry.
    pub attempt: u32,
    /// What it is for.
    pub request: Request,
    /// [`Request::digest`], computed where the request enters the cluster.
    pub request_digest: [u8; 32],
    /// Stands for the first reservation that the tenant made with it, as long as that one is remembered.
    /// Not part of the request.
    pub key: Option<IdempotencyKey>,
}

/// See [`Command::Start`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The reservation.
    pub id: ReservationId,
    /// The operation to bind.
    pub operation: OperationId,
}

/// See [`Command::Settle`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settle {
    /// The reservation.
    pub id: ReservationId,
    /// The operation that was bound at start.
    pub operation: OperationId,
    /// What it used, per unit. A unit that was held and is absent here settles at the held amount
    /// for `requests`, and at 0 for the others, or if it is estimated at the held amount for all; `slots`
    /// always settle with 0 spent.
    pub actual: Amounts,
    /// The execution ended and its usage was not reported: these are guesses, and may be corrected once.
    pub estimated: bool,
}

/// See [`Command::Correct`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correct {
    /// The reservation.
    pub id: ReservationId,
    /// The operation that was bound at start.
    pub operation: OperationId,
    /// What it really used, per unit. A unit that is absent stays as it was estimated.
    pub actual: Amounts,
}

/// See [`Command::Release`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The reservation.
    pub id: ReservationId,
}

/// See [`Command::Renew`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renew {
    /// The reservation.
    pub id: ReservationId,
    /// From now on, ms; at least 1 and at most the route's maximum. Never shortens what runs already.
    pub extend_ms: u64,
}

/// See [`Command::ReportUnknown`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportUnknown {
    /// The reservation.
    pub id: ReservationId,
    /// The operation that was bound at start.
    pub operation: OperationId,
}

/// See [`Command::UnreadablePlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadablePlan {
    /// As in [`PublishPlan`].
    pub expected_generation: Option<u64>,
    /// As in [`PublishPlan`].
    pub force: bool,
    /// What was to be a plan.
    pub document: Arc<str>,
    /// As in [`PublishPlan`].
    pub actor: ActorName,
    /// What is wrong with it.
    pub problem: String,
}

/// See [`Command::ResolveUnknown`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveUnknown {
    /// The reservation.
    pub id: ReservationId,
    /// What it used, of every unit that was held: unknown is never taken for unused. `requests` count as
    /// held if they are absent; `slots` always end with 0 spent.
    pub actual: Amounts,
    /// Who says so.
    pub actor: ActorName,
    /// On what grounds.
    pub reason: String,
}

/// See [`Command::PublishPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishPlan {
    /// The generation that the publisher saw; another one in force refuses the publish. `None`: any.
    pub expected_generation: Option<u64>,
    /// Publish even if that destroys what is held on limits or owed to them ([`crate::Book::losses`]).
    pub force: bool,
    /// The document, kept word for word so that `plan get` returns what was published.
    pub document: Arc<str>,
    /// What the document means; parsed where it enters the cluster and again by each replica.
    pub plan: Arc<Plan>,
    /// Who published it.
    pub actor: ActorName,
}

/// See [`Command::RollBack`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollBack {
    /// The generation to go back to: the plan that was in force then becomes the content of a new generation.
    pub to: u64,
    /// The generation that the caller saw; `None`: any.
    pub expected_generation: Option<u64>,
    /// Who rolls back.
    pub actor: ActorName,
}

/// See [`Command::SetTenant`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetTenant {
    /// The tenant.
    pub tenant: TenantId,
    /// Its whole record; `None` removes it, so that the plan's own record or the defaults apply.
    pub record: Option<Arc<TenantRecord>>,
    /// The generation that the caller saw; `None`: any.
    pub expected_generation: Option<u64>,
    /// Who set it.
    pub actor: ActorName,
}

/// See [`Command::Freeze`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// What is frozen, on a route of the plan in force.
    pub scope: FreezeScope,
    /// Who froze it.
    pub actor: ActorName,
    /// Why.
    pub reason: String,
}

/// See [`Command::Unfreeze`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfreeze {
    /// What is frozen, exactly.
    pub scope: FreezeScope,
    /// Who lifted it.
    pub actor: ActorName,
    /// Why.
    pub reason: String,
}

/// See [`Command::SetWebhook`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetWebhook {
    /// The tenant.
    pub tenant: TenantId,
    /// Where its events go; `None`: nowhere any more.
    pub webhook: Option<Webhook>,
    /// Who.
    pub actor: ActorName,
}

/// See [`Command::AdvanceWebhook`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvanceWebhook {
    /// The tenant.
    pub tenant: TenantId,
    /// The number of the last event that needs not be sent any more.
    pub cursor: u64,
}
