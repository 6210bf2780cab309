//! Seeded random ledger values: every variant, edges of every number, absent and present options.
#![allow(dead_code, clippy::unwrap_used)]

use std::str::FromStr;
use std::sync::Arc;

use holdfast_ledger::adjust::{AdjustmentReceipt, AdjustmentRow, Boost, Operated, Standing};
use holdfast_ledger::answer::{
    Answer, Correction, Estimate, Extras, Hold, LegReceipt, Reason, Receipt, Refusal, Rejection, State, Tier,
};
use holdfast_ledger::command::{
    AdvanceWebhook, Correct, EpochBounds, Freeze, PublishPlan, Release, Renew, ReportUnknown, Request,
    Reserve, ResolveUnknown, RollBack, SetTenant, SetWebhook, Settle, Start, Unfreeze,
};
use holdfast_ledger::event::{Event, EventKind, Statement};
use holdfast_ledger::ids::IdError;
use holdfast_ledger::loss::{LimitLoss, LossyChange};
use holdfast_ledger::plan::{Calendar, Ladder, Level, Override, Overrides, Period, Plan, Rule, TenantRecord};
use holdfast_ledger::query::{PublishedPlan, QuotaLine, RolledBack, TenantVersion};
use holdfast_ledger::record::{
    Account, CalendarRow, ClosedAccount, Columns, Ended, Freeze as FreezeRow, FreezeCause, FreezeScope,
    Header, Lane, Leg, LimitKind, Lineage, LineageKey, Record, ReservationRow, Subject, Tombstone,
};
use holdfast_ledger::shadow::{ShadowCounts, ShadowDecision, Undecided};
use holdfast_ledger::webhook::{Webhook, WebhookRow, WebhookSecret, WebhookUrl};
use holdfast_ledger::{Adjust, Adjustment, AdjustmentId, Amounts, Command, ReservationId, Unit};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub const STATES: [State; 8] = [
    State::Reserved,
    State::Started,
    State::Expiring,
    State::Expired,
    State::Released,
    State::UsageUnknown,
    State::Settled,
    State::SettledWithDebt,
];
pub const TIERS: [Tier; 3] = [Tier::Normal, Tier::DegradedLight, Tier::DegradedHeavy];
pub const LEVELS: [Level; 3] = [Level::Global, Level::Tenant, Level::User];
pub const REASONS: [Reason; 5] =
    [Reason::Frozen, Reason::NeverFits, Reason::Debt, Reason::Held, Reason::Spent];

pub const UNDECIDED: [Undecided; 4] =
    [Undecided::ReservationMax, Undecided::LegsMax, Undecided::AccountsMax, Undecided::EpochBounds];

/// A document that parses.
pub const PLAN: &str = include_str!("../../../scripts/plans/three-level.yaml");

pub struct Random(pub ChaCha8Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn number(&mut self) -> u64 {
        match self.0.random_range(0..6) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => self.0.random_range(0..1000),
            _ => self.0.random(),
        }
    }

    pub fn wide(&mut self) -> u128 {
        match self.0.random_range(0..4) {
            0 => 0,
            1 => u128::MAX,
            2 => self.number().into(),
            _ => self.0.random(),
        }
    }

    pub fn flip(&mut self) -> bool {
        self.0.random()
    }

    pub fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flip() { Some(value(self)) } else { None }
    }

    pub fn list<T>(&mut self, max: usize, mut value: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.0.random_range(0..=max);
        (0..count).map(|_| value(self)).collect()
    }

    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        *values.choose(&mut self.0).unwrap()
    }

    pub fn name<T: FromStr<Err = IdError>>(&mut self) -> T {
        const FIRST: &[u8] = b"ABCXYZabcxyz0189";
        const REST: &[u8] = b"ABCXYZabcxyz0189._:@/+-";
        let length = self.one_of(&[1, 2, 7, 26, 128]);
        let mut text = String::new();
        text.push(self.one_of(FIRST).into());
        while text.len() < length {
            text.push(self.one_of(REST).into());
        }
        text.parse().unwrap()
    }

    pub fn text(&mut self) -> String {
        self.list(20, |random| random.one_of(&['a', ' ', '"', 'é', '\n', '元'])).into_iter().collect()
    }

    pub fn id(&mut self) -> ReservationId {
        ReservationId(self.wide())
    }

    pub fn digest(&mut self) -> [u8; 32] {
        self.0.random()
    }

    pub fn unit(&mut self) -> Unit {
        self.one_of(&Unit::ALL)
    }

    /// Any amounts, 0 included.
    pub fn amounts(&mut self) -> Amounts {
        let mut amounts = Amounts::NONE;
        for unit in Unit::ALL {
            let amount = self.maybe(Random::number);
            amounts.set(unit, amount);
        }
        amounts
    }

    /// Amounts that a reserve may ask for.
    pub fn asked(&mut self) -> Amounts {
        let mut amounts = self.amounts();
        for unit in [Unit::Requests, Unit::Tokens, Unit::Slots] {
            if amounts.get(unit) == Some(0) {
                amounts.set(unit, Some(1));
            }
        }
        amounts
    }

    pub fn request(&mut self) -> Request {
        Request {
            tenant: self.name(),
            user: self.maybe(Random::name),
            route: self.name(),
            model: self.maybe(Random::name),
            region: self.maybe(Random::name),
            amounts: self.asked(),
            minimum: if self.flip() { Amounts::NONE } else { self.asked() },
            hold_ttl_ms: self.maybe(|random| random.number().max(1)),
        }
    }

    pub fn reserve(&mut self) -> Reserve {
        let request = self.request();
        let request_digest = request.digest();
        let attempt = self.0.random_range(1..=u32::MAX);
        Reserve { id: self.id(), attempt, request, request_digest, key: self.maybe(Random::name) }
    }

    /// A command that travels in the batched stream.
    pub fn batched(&mut self) -> Command {
        match self.0.random_range(0..7) {
            0 => Command::Reserve(self.reserve()),
            1 => Command::Start(Start { id: self.id(), operation: self.name() }),
            2 => Command::Settle(Settle {
                id: self.id(),
                operation: self.name(),
                actual: self.amounts(),
                estimated: self.flip(),
            }),
            6 => Command::Correct(Correct { id: self.id(), operation: self.name(), actual: self.amounts() }),
            3 => Command::Release(Release { id: self.id() }),
            4 => Command::Renew(Renew { id: self.id(), extend_ms: self.number().max(1) }),
            _ => Command::ReportUnknown(ReportUnknown { id: self.id(), operation: self.name() }),
        }
    }

    pub fn publish(&mut self) -> PublishPlan {
        PublishPlan {
            expected_generation: self.maybe(Random::number),
            force: self.flip(),
            document: PLAN.into(),
            plan: Arc::new(Plan::parse(PLAN).unwrap()),
            actor: self.name(),
        }
    }

    pub fn set_tenant(&mut self) -> SetTenant {
        SetTenant {
            tenant: self.name(),
            record: self.maybe(|random| Arc::new(random.tenant_record())),
            expected_generation: self.maybe(Random::number),
            actor: self.name(),
        }
    }

    fn freeze_scope(&mut self) -> FreezeScope {
        FreezeScope {
            tenant: self.name(),
            user: self.maybe(Random::name),
            route: self.name(),
            model: self.maybe(Random::name),
            region: self.maybe(Random::name),
        }
    }

    pub fn unfreeze(&mut self) -> Unfreeze {
        let reason = format!("because {}", self.text());
        Unfreeze { scope: self.freeze_scope(), actor: self.name(), reason }
    }

    pub fn freeze(&mut self) -> Freeze {
        let Unfreeze { scope, actor, reason } = self.unfreeze();
        Freeze { scope, actor, reason }
    }

    pub fn resolve_unknown(&mut self) -> ResolveUnknown {
        ResolveUnknown {
            id: self.id(),
            actual: self.amounts(),
            actor: self.name(),
            reason: format!("because {}", self.text()),
        }
    }

    /// The key of an enforced lineage.
    pub fn enforced_key(&mut self) -> LineageKey {
        LineageKey { lane: Lane::Enforced, ..self.lineage_key() }
    }

    pub fn adjustment_id(&mut self) -> AdjustmentId {
        AdjustmentId(self.id().0)
    }

    pub fn adjust(&mut self) -> Adjust {
        let what = match self.0.random_range(0..7) {
            0 => Adjustment::Grant(self.number()),
            1 => Adjustment::Take(self.number()),
            2 => Adjustment::Charge(self.number()),
            3 => Adjustment::Correct(self.number()),
            4 => Adjustment::SetUsed(self.number()),
            5 => Adjustment::Boost { amount: self.number(), until_ms: self.number() },
            _ => Adjustment::EndBoost { boost: self.adjustment_id() },
        };
        Adjust {
            id: self.adjustment_id(),
            lineage: Arc::new(self.enforced_key()),
            epoch_start_ms: self.maybe(Random::number),
            what,
            actor: self.name(),
            reason: format!("because {}", self.text()),
        }
    }

    pub fn standing(&mut self) -> Standing {
        Standing {
            used: self.number(),
            held: self.number(),
            limit_amount: self.maybe(Random::number),
            remaining: self.maybe(Random::number),
            debt: self.number(),
        }
    }

    pub fn adjustment_receipt(&mut self) -> Arc<AdjustmentReceipt> {
        Arc::new(AdjustmentReceipt {
            command: self.adjust(),
            unit: self.unit(),
            at_ms: self.number(),
            revision: self.number(),
            generation: self.number(),
            epoch_start_ms: self.maybe(Random::number),
            before: self.standing(),
            after: self.standing(),
        })
    }

    fn operated(&mut self) -> Option<Box<Operated>> {
        let operated = Operated {
            net: self.signed(),
            boosts: self.list(2, |random| Boost {
                id: random.adjustment_id(),
                amount: random.number(),
                until_ms: random.number(),
            }),
        };
        (operated != Operated::default()).then(|| Box::new(operated))
    }

    pub fn set_webhook(&mut self) -> SetWebhook {
        SetWebhook { tenant: self.name(), webhook: self.maybe(Random::webhook), actor: self.name() }
    }

    fn webhook(&mut self) -> Webhook {
        let key: Vec<u8> = (0..self.0.random_range(24..=64)).map(|_| self.0.random()).collect();
        let url = format!("https://{}.example/{}", self.0.random::<u32>(), self.0.random::<u32>());
        Webhook { url: WebhookUrl::new(&url).unwrap(), secret: WebhookSecret::new(&key).unwrap() }
    }

    /// Any command at all.
    pub fn command(&mut self) -> Command {
        match self.0.random_range(0..17) {
            15 => Command::SetWebhook(self.set_webhook()),
            16 => Command::AdvanceWebhook(AdvanceWebhook { tenant: self.name(), cursor: self.number() }),
            0 => Command::PublishPlan(self.publish()),
            1 => Command::SetTenant(self.set_tenant()),
            2 => Command::Unfreeze(self.unfreeze()),
            3 => Command::Tick,
            4 => Command::RollBack(RollBack {
                to: self.number(),
                expected_generation: self.maybe(Random::number),
                actor: self.name(),
            }),
            5 => Command::RaiseRules { rules_version: self.0.random() },
            6 => Command::Adjust(Box::new(self.adjust())),
            7 => Command::Freeze(self.freeze()),
            8 => Command::ResolveUnknown(self.resolve_unknown()),
            _ => self.batched(),
        }
    }

    pub fn overrides(&mut self) -> Overrides {
        let one = |random: &mut Self| {
            let rule = match random.flip() {
                true => Override::Unlimited,
                false => Override::Amount { amount: random.number(), burst: random.maybe(Random::number) },
            };
            (random.name(), rule)
        };
        self.list(3, one).into_iter().collect()
    }

    pub fn tenant_record(&mut self) -> TenantRecord {
        TenantRecord {
            tier: self.maybe(Random::name),
            overrides: self.overrides(),
            users: self.list(3, |random| (random.name(), random.overrides())).into_iter().collect(),
        }
    }

    pub fn calendar(&mut self) -> Calendar {
        let period = match self.0.random_range(0..8) {
            0 => Period::Seconds(self.0.random()),
            1 => Period::Hour,
            2 => Period::Day,
            3 => Period::Week(self.0.random()),
            4 => Period::Month(self.0.random()),
            5 => Period::Year(self.0.random()),
            6 => Period::Days(self.0.random()),
            _ => Period::Lifetime,
        };
        Calendar { period, zone: self.one_of(&["UTC", "Asia/Tokyo", "Europe/Amsterdam"]).to_owned() }
    }

    pub fn epoch_bounds(&mut self) -> EpochBounds {
        EpochBounds { calendar: Arc::new(self.calendar()), bounds_ms: self.list(4, Random::number) }
    }

    pub fn receipt(&mut self) -> Receipt {
        Receipt {
            id: self.id(),
            state: self.one_of(&STATES),
            hold: self.hold().into(),
            request_digest: self.digest(),
            generation: self.number(),
            tier: self.one_of(&TIERS),
            reserved: self.amounts(),
            reserved_at_ms: self.number(),
            reserved_revision: self.number(),
            expires_at_ms: self.number(),
            operation: self.maybe(Random::name),
            started_at_ms: self.maybe(Random::number),
            actual: self.maybe(Random::amounts),
            ended_at_ms: self.maybe(Random::number),
            ended_revision: self.maybe(Random::number),
            debt: self.amounts(),
            shadow: self.maybe(Random::shadow_decision).map(Arc::new),
            extras: self.maybe(|random| Arc::new(random.extras())),
        }
    }

    pub fn extras(&mut self) -> Extras {
        Extras {
            asked: self.amounts(),
            key: self.maybe(Random::name),
            resolved_by: self.maybe(Random::name),
            estimate: self.maybe(|random| Estimate { correction: random.maybe(Random::correction) }),
        }
    }

    pub fn correction(&mut self) -> Correction {
        Correction {
            at_ms: self.number(),
            revision: self.number(),
            actual: self.amounts(),
            debt: self.amounts(),
        }
    }

    pub fn shadow_decision(&mut self) -> ShadowDecision {
        match self.0.random_range(0..3) {
            0 => ShadowDecision::Admitted { tier: self.one_of(&TIERS) },
            1 => ShadowDecision::Rejected(self.rejection()),
            _ => ShadowDecision::Undecided(self.one_of(&UNDECIDED)),
        }
    }

    fn hold(&mut self) -> Hold {
        let subject = Subject { tenant: self.name(), user: self.maybe(Random::name), route: self.name() };
        Hold::new(subject, self.list(7, Random::leg_receipt).into())
    }

    pub fn leg_receipt(&mut self) -> LegReceipt {
        LegReceipt {
            limit: self.name(),
            level: self.one_of(&LEVELS),
            unit: self.unit(),
            amount: self.number(),
            generation: self.number(),
            epoch_start_ms: self.maybe(Random::number),
        }
    }

    pub fn rejection(&mut self) -> Rejection {
        Rejection {
            generation: self.number(),
            limit: self.name(),
            level: self.one_of(&LEVELS),
            unit: self.unit(),
            reason: self.one_of(&REASONS),
            reset_at_ms: self.maybe(Random::number),
            // A status carries it as a google.protobuf.Duration: at most 315 576 000 000 s.
            retry_after_ms: self.maybe(|random| random.number().min(315_576_000_000_000)),
        }
    }

    pub fn refusal(&mut self) -> Refusal {
        match self.0.random_range(0..12) {
            0 => Refusal::Invalid { field: "request.amounts.tokens", problem: self.text() },
            1 => Refusal::Conflict { state: self.one_of(&STATES) },
            2 => Refusal::WrongState { state: self.one_of(&STATES) },
            3 => Refusal::NotFound,
            4 => Refusal::IdTooOld { floor_ms: self.number() },
            5 => Refusal::IdInFuture { latest_ms: self.number() },
            6 => Refusal::GenerationMismatch { generation: self.number() },
            7 => Refusal::Destructive { losses: vec![self.limit_loss()] },
            8 => Refusal::Overloaded { ceiling: "ACCOUNTS_MAX" },
            9 => Refusal::AdjustmentConflict,
            10 => Refusal::EpochClosed { running_start_ms: self.maybe(Random::number) },
            _ => Refusal::Rejected(self.rejection()),
        }
    }

    pub fn limit_loss(&mut self) -> LimitLoss {
        let change = match self.0.random_range(0..5) {
            0 => LossyChange::Removed,
            1 => LossyChange::Rescoped,
            2 => LossyChange::KindChanged,
            3 => LossyChange::UnitChanged { to: self.unit() },
            _ => LossyChange::CurrencyChanged,
        };
        LimitLoss {
            limit: self.name(),
            unit: self.unit(),
            change,
            reservations: self.number(),
            held: self.wide(),
            debt: self.wide(),
        }
    }

    /// The answer to a command of the `Ledger` service.
    pub fn answer(&mut self) -> Answer {
        match self.0.random_range(0..3) {
            0 => Answer::Reservation(self.receipt().into()),
            1 => Answer::Tombstone { id: self.id() },
            _ => Answer::Refused(self.refusal()),
        }
    }

    pub fn lineage_key(&mut self) -> LineageKey {
        LineageKey {
            limit: self.name(),
            tenant: self.maybe(Random::name),
            user: self.maybe(Random::name),
            route: self.maybe(Random::name),
            model: self.maybe(Random::name),
            region: self.maybe(Random::name),
            lane: self.one_of(&[Lane::Enforced, Lane::Shadow]),
        }
    }

    pub fn signed(&mut self) -> i128 {
        match self.0.random_range(0..4) {
            0 => 0,
            1 => i128::MIN,
            2 => i128::MAX,
            _ => self.0.random(),
        }
    }

    pub fn columns(&mut self) -> Columns {
        Columns {
            opening: self.wide(),
            refilled: self.wide(),
            granted: self.wide(),
            corrected: self.wide(),
            shards_back: self.wide(),
            moved_in: self.wide(),
            rule_raise: self.wide(),
            forgiven: self.wide(),
            overdraft_issued: self.wide(),
            available: self.wide(),
            reserved: self.wide(),
            spent: self.wide(),
            to_shards: self.wide(),
            carried_forward: self.wide(),
            forfeited: self.wide(),
            overdraft_repaid: self.wide(),
        }
    }

    pub fn account(&mut self) -> Account {
        Account {
            number: self.0.random(),
            generation: self.number(),
            epoch_start_ms: self.maybe(Random::number),
            columns: self.columns(),
            legs: self.0.random(),
        }
    }

    pub fn rule(&mut self) -> Rule {
        match self.0.random_range(0..4) {
            0 => Rule::Bucket { amount: self.number(), per_ms: self.number(), burst: self.number() },
            1 => Rule::Period {
                limit: self.number(),
                calendar: Arc::new(self.calendar()),
                carry_over: self.number(),
                carry_debt: self.flip(),
            },
            2 => Rule::Concurrency { limit: self.number() },
            _ => Rule::Unlimited { calendar: self.maybe(|random| Arc::new(random.calendar())) },
        }
    }

    pub fn lineage(&mut self) -> Lineage {
        Lineage {
            key: Arc::new(self.lineage_key()),
            unit: self.unit(),
            kind: self.one_of(&[LimitKind::Bucket, LimitKind::Concurrency, LimitKind::Total]),
            rule: self.maybe(Random::rule),
            ladder: self.maybe(|random| Ladder {
                alert_percent: random.0.random(),
                degrade_percent: random.0.random(),
            }),
            overdraft_max: self.maybe(Random::number),
            seen_generation: self.number(),
            replayed_ms: self.number(),
            refill_remainder: self.number(),
            epoch_first: self.0.random(),
            epoch_end_ms: self.maybe(Random::number),
            current: self.account(),
            debt: self.wide(),
            debt_generation: self.number(),
            carried_in: self.wide(),
            earlier_repaid: self.wide(),
            past_used: self.signed(),
            past_debt: self.signed(),
            crossed: self.0.random::<u128>() & ((1 << 101) - 1),
            archived_debt: self.signed(),
            archived_used: self.signed(),
            legs: self.0.random(),
            drop_at_ms: self.maybe(Random::number),
            operated: self.operated(),
        }
    }

    pub fn reservation_row(&mut self) -> ReservationRow {
        ReservationRow {
            id: self.id(),
            request_digest: self.digest(),
            subject: Arc::new(Subject {
                tenant: self.name(),
                user: self.maybe(Random::name),
                route: self.name(),
            }),
            generation: self.number(),
            tier: self.one_of(&TIERS),
            state: self.one_of(&STATES),
            reserved: self.amounts(),
            legs: self
                .list(6, |random| Leg {
                    lineage: random.0.random(),
                    account: random.0.random(),
                    amount: random.number(),
                })
                .into(),
            reserved_at_ms: self.number(),
            reserved_revision: self.number(),
            expires_at_ms: self.number(),
            grace_ms: self.number(),
            operation: self.maybe(Random::name),
            started_at_ms: self.number(),
            unknown_at_ms: self.number(),
            shadow: self.maybe(Random::shadow_decision).map(Arc::new),
            ended: self.maybe(|random| {
                Box::new(Ended {
                    at_ms: random.number(),
                    revision: random.number(),
                    forget_at_ms: random.number(),
                    actual: random.amounts(),
                    debt: random.amounts(),
                })
            }),
            extras: self.maybe(|random| Arc::new(random.extras())),
        }
    }

    pub fn event_kind(&mut self) -> EventKind {
        let lineage = Arc::new(self.lineage_key());
        match self.0.random_range(0..14) {
            12 => EventKind::BoostEnded { lineage, boost: self.adjustment_id() },
            11 => EventKind::WebhookSet { tenant: self.name(), removed: self.flip(), actor: self.name() },
            10 => EventKind::Adjusted(self.adjustment_receipt()),
            0 => EventKind::Crossed {
                lineage,
                epoch_start_ms: self.maybe(Random::number),
                percent: self.0.random(),
                tier: self.one_of(&TIERS),
            },
            1 => EventKind::Indebted { lineage, reservation: self.maybe(Random::id) },
            2 => EventKind::Repaid { lineage },
            3 => EventKind::Forgiven { lineage, amount: self.wide() },
            4 => EventKind::Breached {
                reservation: self.id(),
                scope: self.freeze_scope(),
                lane: self.one_of(&[Lane::Enforced, Lane::Shadow]),
                unit: self.unit(),
                limit: self.maybe(Random::name),
                frozen: self.one_of(&LEVELS),
            },
            8 => EventKind::UnknownResolved {
                reservation: self.id(),
                tenant: self.name(),
                user: self.maybe(Random::name),
                route: self.name(),
                actor: self.name(),
                reason: self.text(),
            },
            9 => EventKind::Frozen { scope: self.freeze_scope(), actor: self.name(), reason: self.text() },
            5 => EventKind::Unfrozen { scope: self.freeze_scope(), actor: self.name(), reason: self.text() },
            6 => EventKind::PlanPublished {
                generation: self.number(),
                forced: self.flip(),
                actor: self.name(),
            },
            7 => EventKind::RolledBack {
                generation: self.number(),
                restored: self.number(),
                first: self.number(),
                actor: self.name(),
            },
            _ => EventKind::TenantSet { generation: self.number(), tenant: self.name(), actor: self.name() },
        }
    }

    pub fn quota_line(&mut self) -> QuotaLine {
        QuotaLine {
            limit: self.name(),
            level: self.one_of(&LEVELS),
            unit: self.unit(),
            user: self.maybe(Random::name),
            route: self.maybe(Random::name),
            model: self.maybe(Random::name),
            region: self.maybe(Random::name),
            lane: self.one_of(&[Lane::Enforced, Lane::Shadow]),
            used: self.number(),
            held: self.number(),
            limit_amount: self.maybe(Random::number),
            remaining: self.maybe(Random::number),
            ratio_ppm: self.number(),
            tier: self.one_of(&TIERS),
            debt: self.number(),
            suspended: self.flip(),
            frozen: self.flip(),
            reset_at_ms: self.maybe(Random::number),
            generation: self.number(),
            epoch_start_ms: self.maybe(Random::number),
        }
    }

    /// Any row of a snapshot.
    pub fn record(&mut self) -> Record {
        let slot = self.0.random();
        match self.0.random_range(0..14) {
            12 => Record::Webhook(WebhookRow {
                tenant: self.name(),
                webhook: self.webhook(),
                cursor: self.number(),
                set_at_ms: self.number(),
                actor: self.name(),
            }),
            0 => Record::Header(Header {
                index: self.number(),
                term: self.number(),
                revision: self.number(),
                clock_ms: self.number(),
                id_floor_ms: self.number(),
                generation: self.number(),
                rules_version: self.0.random(),
                event_sequence: self.number(),
                digest: self.wide(),
                records: self.number(),
            }),
            1 => Record::Plan(PublishedPlan {
                generation: self.number(),
                document: PLAN.into(),
                plan: Arc::new(Plan::parse(PLAN).unwrap()),
                published_at_ms: self.number(),
                actor: self.name(),
                roll_back: self
                    .maybe(|random| RolledBack { restored: random.number(), first: random.number().max(1) }),
            }),
            2 => Record::Tenant(TenantVersion {
                tenant: self.name(),
                generation: self.number(),
                record: self.maybe(|random| Arc::new(random.tenant_record())),
                set_at_ms: self.number(),
                actor: self.name(),
            }),
            3 => Record::Calendar(CalendarRow {
                calendar: Arc::new(self.calendar()),
                bounds_ms: self.list(5, Random::number),
            }),
            4 => Record::Lineage(slot, Box::new(self.lineage())),
            5 => Record::ClosedAccount(
                slot,
                Box::new(ClosedAccount { lineage: self.0.random(), account: self.account() }),
            ),
            6 => Record::Reservation(slot, self.reservation_row()),
            7 => Record::Tombstone(
                slot,
                Tombstone { id: self.id(), at_ms: self.number(), forget_at_ms: self.number() },
            ),
            8 => Record::Freeze(FreezeRow {
                scope: self.freeze_scope(),
                at_ms: self.number(),
                cause: match self.flip() {
                    true => FreezeCause::Operator { actor: self.name(), reason: self.text() },
                    false => FreezeCause::Breach {
                        reservation: self.id(),
                        limit: self.name(),
                        level: self.one_of(&LEVELS),
                        unit: self.unit(),
                    },
                },
            }),
            9 => Record::Shadow(ShadowCounts {
                route: self.name(),
                since_ms: self.number(),
                admitted: [self.number(), self.number(), self.number()],
                rejected: self.list(3, |random| (random.name(), random.number())).into_iter().collect(),
                undecided: self.number(),
            }),
            10 => Record::Adjustment(AdjustmentRow {
                receipt: self.adjustment_receipt(),
                forget_at_ms: self.number(),
            }),
            11 => Record::Statement(Arc::new(Statement {
                lineage: Arc::new(self.lineage_key()),
                unit: self.unit(),
                generation: self.number(),
                epoch_start_ms: self.maybe(Random::number),
                columns: self.columns(),
                at_ms: self.number(),
            })),
            _ => Record::Event(Arc::new(Event {
                sequence: self.number(),
                at_ms: self.number(),
                revision: self.number(),
                kind: self.event_kind(),
            })),
        }
    }
}
