//! The bytes of every row of a snapshot, as they are on disks today. A test here that fails means
//! that what is written changed: then the format's version and its document change too.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::sync::Arc;

use holdfast_ledger::adjust::{AdjustmentReceipt, AdjustmentRow, Boost, Operated, Standing};
use holdfast_ledger::answer::{Correction, Estimate, Extras, State, Tier};
use holdfast_ledger::event::{Event, EventKind, Statement};
use holdfast_ledger::plan::{Calendar, Ladder, Level, Period, Plan, Rule};
use holdfast_ledger::query::{PublishedPlan, TenantVersion};
use holdfast_ledger::record::{
    Account, CalendarRow, ClosedAccount, Columns, Ended, Freeze, FreezeCause, FreezeScope, Header, Lane, Leg,
    LimitKind, Lineage, LineageKey, Record, ReservationRow, Subject, Tombstone,
};
use holdfast_ledger::shadow::ShadowCounts;
use holdfast_ledger::webhook::{Webhook, WebhookRow, WebhookSecret, WebhookUrl};
use holdfast_ledger::{Adjust, Adjustment, AdjustmentId, Amounts, ReservationId, Unit};
use holdfast_proto::records::{decode_record, encode_record};

const PLAN: &str = include_str!("../../scripts/plans/three-level.yaml");
const ID: ReservationId = ReservationId(0x0123_4567_89ab_cdef_0011_2233_4455_6677);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn check(record: Record, golden: &str) {
    let mut buffer = Vec::new();
    encode_record(&record, &mut buffer);
    assert_eq!(hex(&buffer), golden, "{record:?}");
    assert_eq!(decode_record(&buffer), Ok(record));
}

fn calendar() -> Arc<Calendar> {
    Arc::new(Calendar { period: Period::Month(1), zone: "Asia/Tokyo".into() })
}

fn key() -> LineageKey {
    LineageKey {
        limit: "tokens".parse().unwrap(),
        tenant: Some("acme".parse().unwrap()),
        user: Some("u1".parse().unwrap()),
        route: Some("chat".parse().unwrap()),
        model: Some("large".parse().unwrap()),
        region: Some("eu".parse().unwrap()),
        lane: Lane::Shadow,
    }
}

/// Every column has another value; one needs more than 64 bits.
fn account() -> Account {
    Account {
        number: 1,
        generation: 2,
        epoch_start_ms: Some(3),
        columns: Columns {
            opening: 1,
            refilled: 2,
            granted: 3,
            corrected: 4,
            shards_back: 5,
            moved_in: 6,
            rule_raise: 7,
            forgiven: 8,
            overdraft_issued: 9,
            available: 10,
            reserved: 11,
            spent: 1 << 64,
            to_shards: 13,
            carried_forward: 14,
            forfeited: 15,
            overdraft_repaid: 16,
        },
        legs: 4,
    }
}

fn lineage(rule: Rule) -> Record {
    let lineage = Lineage {
        key: Arc::new(key()),
        unit: Unit::Tokens,
        kind: LimitKind::Total,
        rule: Some(rule),
        ladder: Some(Ladder { alert_percent: 80, degrade_percent: 95 }),
        overdraft_max: Some(1),
        seen_generation: 2,
        replayed_ms: 3,
        refill_remainder: 4,
        epoch_first: 2,
        epoch_end_ms: Some(5),
        current: account(),
        debt: 6,
        debt_generation: 0,
        carried_in: 7,
        earlier_repaid: 8,
        past_used: 9,
        past_debt: -10,
        crossed: 1 << 80 | 1 << 95,
        archived_debt: 11,
        archived_used: -12,
        legs: 13,
        drop_at_ms: Some(14),
        operated: Some(Box::new(Operated {
            net: -15,
            boosts: vec![Boost { id: AdjustmentId(ID.0), amount: 16, until_ms: 17 }],
        })),
    };
    Record::Lineage(9, Box::new(lineage))
}

#[test]
fn header() {
    let header = Header {
        index: 1,
        term: 2,
        revision: 3,
        clock_ms: 4,
        id_floor_ms: 5,
        generation: 6,
        rules_version: 7,
        event_sequence: 8,
        digest: 9,
        records: 10,
    };
    check(
        Record::Header(header),
        "0a24080110021803200428053006380740084a1000000000000000000000000000000009500a",
    );
}

#[test]
fn plan() {
    let plan = PublishedPlan {
        generation: 1,
        document: PLAN.into(),
        plan: Arc::new(Plan::parse(PLAN).unwrap()),
        published_at_ms: 2,
        actor: "ops".parse().unwrap(),
        roll_back: None,
    };
    let mut buffer = Vec::new();
    encode_record(&Record::Plan(plan.clone()), &mut buffer);
    let text = hex(&buffer);
    let (head, tail) = text.split_once(&hex(PLAN.as_bytes())).unwrap();
    assert!(head.starts_with("12") && head.contains("080112"), "{head}");
    assert_eq!(tail, "180222036f7073");
    assert_eq!(decode_record(&buffer), Ok(Record::Plan(plan)));
}

#[test]
fn tenant() {
    let tenant = TenantVersion {
        tenant: "acme".parse().unwrap(),
        generation: 1,
        record: Some(Arc::default()),
        set_at_ms: 2,
        actor: "ops".parse().unwrap(),
    };
    check(Record::Tenant(tenant), "1a110a0461636d6510011a0020022a036f7073");
}

#[test]
fn bounds() {
    let row = CalendarRow { calendar: calendar(), bounds_ms: vec![1, 300] };
    check(Record::Calendar(row), "22170a10080510011a0a417369612f546f6b796f120301ac02");
}

#[test]
fn lineages() {
    check(
        lineage(Rule::Bucket { amount: 1, per_ms: 2, burst: 3 }),
        "2ae101080912250a06746f6b656e73120461636d651a0275312204636861742a056c61726765320265753801180222080a060801100218032a040850105f300138024003480450055a4b08011002180322410a020801120208021a020803220208042a020805320208063a020807420208084a0208095202080a5a02080b620210016a02080d7202080e7a02080f82010208102804620208066a0208077202080882010208138a0102505f9201020816a0010da8010eb00103b80102c201020817ca0102081dd201160a100123456789abcdef001122334455667710101811da01020812",
    );
    let period = Rule::Period { limit: 1, calendar: calendar(), carry_over: 2, carry_debt: true };
    check(
        lineage(period),
        "2af301080912250a06746f6b656e73120461636d651a0275312204636861742a056c617267653202657538011802221a121808011210080510011a0a417369612f546f6b796f180220012a040850105f300138024003480450055a4b08011002180322410a020801120208021a020803220208042a020805320208063a020807420208084a0208095202080a5a02080b620210016a02080d7202080e7a02080f82010208102804620208066a0208077202080882010208138a0102505f9201020816a0010da8010eb00103b80102c201020817ca0102081dd201160a100123456789abcdef001122334455667710101811da01020812",
    );
    check(
        lineage(Rule::Concurrency { limit: 5 }),
        "2add01080912250a06746f6b656e73120461636d651a0275312204636861742a056c61726765320265753801180222041a0208052a040850105f300138024003480450055a4b08011002180322410a020801120208021a020803220208042a020805320208063a020807420208084a0208095202080a5a02080b620210016a02080d7202080e7a02080f82010208102804620208066a0208077202080882010208138a0102505f9201020816a0010da8010eb00103b80102c201020817ca0102081dd201160a100123456789abcdef001122334455667710101811da01020812",
    );
    check(
        lineage(Rule::Unlimited { calendar: None }),
        "2adb01080912250a06746f6b656e73120461636d651a0275312204636861742a056c617267653202657538011802220222002a040850105f300138024003480450055a4b08011002180322410a020801120208021a020803220208042a020805320208063a020807420208084a0208095202080a5a02080b620210016a02080d7202080e7a02080f82010208102804620208066a0208077202080882010208138a0102505f9201020816a0010da8010eb00103b80102c201020817ca0102081dd201160a100123456789abcdef001122334455667710101811da01020812",
    );
}

#[test]
fn closed_account() {
    let closed = ClosedAccount { lineage: 7, account: account() };
    check(
        Record::ClosedAccount(8, Box::new(closed)),
        "3251080810071a4b08011002180322410a020801120208021a020803220208042a020805320208063a020807420208084a0208095202080a5a02080b620210016a02080d7202080e7a02080f82010208102804",
    );
}

#[test]
fn reservation() {
    let row = ReservationRow {
        id: ID,
        request_digest: [0xab; 32],
        subject: Arc::new(Subject {
            tenant: "acme".parse().unwrap(),
            user: Some("u1".parse().unwrap()),
            route: "chat".parse().unwrap(),
        }),
        generation: 1,
        tier: Tier::DegradedLight,
        state: State::SettledWithDebt,
        reserved: Amounts::NONE.with(Unit::Tokens, 600),
        legs: [Leg { lineage: 1, account: 2, amount: 600 }, Leg { lineage: 3, account: 0, amount: 600 }]
            .into(),
        reserved_at_ms: 2,
        reserved_revision: 3,
        expires_at_ms: 4,
        grace_ms: 5,
        operation: Some("op-1".parse().unwrap()),
        started_at_ms: 6,
        unknown_at_ms: 7,
        shadow: None,
        ended: Some(Box::new(Ended {
            at_ms: 8,
            revision: 9,
            forget_at_ms: 10,
            actual: Amounts::NONE.with(Unit::Tokens, 700),
            debt: Amounts::NONE.with(Unit::Tokens, 100),
        })),
        extras: None,
    };
    check(
        Record::Reservation(3, row),
        "3a9401080312100123456789abcdef00112233445566771a20abababababababababababababababababababababababababababababababab220461636d652a02753132046368617438014002480852070a05080210d8045a070801100218d8045a05080318d80460026803700478058201046f702d318801069001079a011708081009180a22070a05080210bc052a060a0408021064",
    );
}

#[test]
fn reservation_with_extras() {
    let row = ReservationRow {
        id: ID,
        request_digest: [0xab; 32],
        subject: Arc::new(Subject {
            tenant: "acme".parse().unwrap(),
            user: None,
            route: "chat".parse().unwrap(),
        }),
        generation: 1,
        tier: Tier::Normal,
        state: State::Reserved,
        reserved: Amounts::NONE.with(Unit::Tokens, 50),
        legs: [Leg { lineage: 1, account: 2, amount: 50 }].into(),
        reserved_at_ms: 2,
        reserved_revision: 3,
        expires_at_ms: 4,
        grace_ms: 5,
        operation: None,
        started_at_ms: 0,
        unknown_at_ms: 0,
        shadow: None,
        ended: None,
        extras: Some(Arc::new(Extras {
            asked: Amounts::NONE.with(Unit::Tokens, 90),
            key: Some("order-7".parse().unwrap()),
            resolved_by: Some("ops".parse().unwrap()),
            estimate: Some(Estimate {
                correction: Some(Correction {
                    at_ms: 11,
                    revision: 12,
                    actual: Amounts::NONE.with(Unit::Tokens, 40),
                    debt: Amounts::NONE.with(Unit::Tokens, 1),
                }),
            }),
        })),
    };
    check(
        Record::Reservation(3, row),
        "3a9101080312100123456789abcdef00112233445566771a20abababababababababababababababababababababababababababababababab220461636d6532046368617438014001480152060a04080210325a060801100218326002680370047805a2012e0a060a040802105a12076f726465722d3718012214080b100c1a060a040802102822060a04080210012a036f7073",
    );
}

#[test]
fn tombstone() {
    let tombstone = Tombstone { id: ID, at_ms: 1, forget_at_ms: 2 };
    check(Record::Tombstone(4, tombstone), "4218080412100123456789abcdef001122334455667718012002");
}

fn scope() -> FreezeScope {
    FreezeScope {
        tenant: "acme".parse().unwrap(),
        user: Some("u1".parse().unwrap()),
        route: "chat".parse().unwrap(),
        model: Some("large".parse().unwrap()),
        region: Some("eu".parse().unwrap()),
    }
}

#[test]
fn freeze() {
    let freeze = Freeze {
        scope: scope(),
        at_ms: 1,
        cause: FreezeCause::Breach {
            reservation: ID,
            limit: "tokens".parse().unwrap(),
            level: Level::User,
            unit: Unit::Tokens,
        },
    };
    check(
        Record::Freeze(freeze.clone()),
        "4a3d0a1b0a0461636d65120275311a046368617422056c617267652a0265751206746f6b656e7318032002280132100123456789abcdef0011223344556677",
    );
    let cause = FreezeCause::Operator { actor: "ops".parse().unwrap(), reason: "why".into() };
    check(
        Record::Freeze(Freeze { cause, ..freeze }),
        "4a290a1b0a0461636d65120275311a046368617422056c617267652a02657528013a036f70734203776879",
    );
}

#[test]
fn webhook() {
    let webhook = Webhook {
        url: WebhookUrl::new("https://acme.example/").unwrap(),
        secret: WebhookSecret::new(&[7; 24]).unwrap(),
    };
    let (tenant, actor) = ("acme".parse().unwrap(), "ops".parse().unwrap());
    let row = WebhookRow { tenant, webhook, cursor: 300, set_at_ms: 1, actor };
    check(
        Record::Webhook(row),
        "ca01430a0461636d6512310a1568747470733a2f2f61636d652e6578616d706c652f121807070707070707070707070707070707070707070707070718ac0220012a036f7073",
    );
}

fn adjusted() -> Arc<AdjustmentReceipt> {
    let before = Standing { used: 1, held: 2, limit_amount: Some(3), remaining: Some(0), debt: 4 };
    let command = Adjust {
        id: AdjustmentId(ID.0),
        lineage: Arc::new(LineageKey { lane: Lane::Enforced, ..key() }),
        epoch_start_ms: None,
        what: Adjustment::Grant(5),
        actor: "ops".parse().unwrap(),
        reason: "why".into(),
    };
    Arc::new(AdjustmentReceipt {
        command,
        unit: Unit::Tokens,
        at_ms: 6,
        revision: 7,
        generation: 8,
        epoch_start_ms: Some(9),
        before,
        after: Standing { limit_amount: None, remaining: None, debt: 0, ..before },
    })
}

#[test]
fn adjustment() {
    check(
        Record::Adjustment(AdjustmentRow { receipt: adjusted(), forget_at_ms: 10 }),
        "5a650a450a100123456789abcdef001122334455667712230a06746f6b656e73120461636d651a0275312204636861742a056c6172676532026575220208052a036f70733203776879100218062007280830093a0a08011002180320002804420408011002480a",
    );
}

#[test]
fn statement() {
    let statement = Statement {
        lineage: Arc::new(key()),
        unit: Unit::Tokens,
        generation: 1,
        epoch_start_ms: Some(2),
        columns: account().columns,
        at_ms: 3,
    };
    check(
        Record::Statement(Arc::new(statement)),
        concat!(
            "62720a250a06746f6b656e73120461636d651a0275312204636861742a056c617267653202657538011002180120022a410a02",
            "0801120208021a020803220208042a020805320208063a020807420208084a0208095202080a5a02080b620210016a02080d72",
            "02080e7a02080f82010208103003",
        ),
    );
}

#[test]
fn shadow_counts() {
    let counts = ShadowCounts {
        route: "chat".parse().unwrap(),
        since_ms: 5,
        admitted: [1, 2, 3],
        rejected: [("l".parse().unwrap(), 7)].into(),
        undecided: 4,
    };
    check(Record::Shadow(counts), "a201160a046368617410051a0301020322050a016c10072804");
}

#[test]
fn events() {
    let lineage = Arc::new(LineageKey { lane: Lane::Enforced, ..key() });
    let event = |kind| Record::Event(Arc::new(Event { sequence: 1, at_ms: 2, revision: 3, kind }));
    let crossed = EventKind::Crossed {
        lineage: lineage.clone(),
        epoch_start_ms: Some(1),
        percent: 80,
        tier: Tier::DegradedLight,
    };
    check(
        event(crossed),
        "5233080110021803222b0a230a06746f6b656e73120461636d651a0275312204636861742a056c6172676532026575100118502002",
    );
    check(
        event(EventKind::Indebted { lineage: lineage.clone(), reservation: Some(ID) }),
        "523f0801100218032a370a230a06746f6b656e73120461636d651a0275312204636861742a056c617267653202657512100123456789abcdef0011223344556677",
    );
    check(
        event(EventKind::Indebted { lineage: lineage.clone(), reservation: None }),
        "522d0801100218032a250a230a06746f6b656e73120461636d651a0275312204636861742a056c6172676532026575",
    );
    check(
        event(EventKind::Adjusted(adjusted())),
        "526b08011002180362630a450a100123456789abcdef001122334455667712230a06746f6b656e73120461636d651a0275312204636861742a056c6172676532026575220208052a036f70733203776879100218062007280830093a0a08011002180320002804420408011002",
    );
    check(
        event(EventKind::Repaid { lineage: lineage.clone() }),
        "522d08011002180332250a230a06746f6b656e73120461636d651a0275312204636861742a056c6172676532026575",
    );
    check(
        event(EventKind::Forgiven { lineage, amount: 5 }),
        "52310801100218033a290a230a06746f6b656e73120461636d651a0275312204636861742a056c617267653202657512020805",
    );
    let breached = EventKind::Breached {
        reservation: ID,
        scope: scope(),
        lane: Lane::Enforced,
        unit: Unit::Micros,
        limit: Some("money".parse().unwrap()),
        frozen: Level::Tenant,
    };
    check(
        event(breached),
        "5242080110021803423a0a100123456789abcdef0011223344556677121b0a0461636d65120275311a046368617422056c617267652a026575180422056d6f6e65792802",
    );
    let unfrozen =
        EventKind::Unfrozen { scope: scope(), actor: "ops".parse().unwrap(), reason: "why".into() };
    check(
        event(unfrozen),
        "522f0801100218034a270a1b0a0461636d65120275311a046368617422056c617267652a02657512036f70731a03776879",
    );
    let published = EventKind::PlanPublished { generation: 4, forced: false, actor: "ops".parse().unwrap() };
    check(event(published), "520f0801100218035207080412036f7073");
    let rolled_back =
        EventKind::RolledBack { generation: 5, restored: 1, first: 2, actor: "ops".parse().unwrap() };
    check(event(rolled_back), "5214080110021803a2010b08051001180222036f7073");
    let set = EventKind::TenantSet {
        generation: 5,
        tenant: "acme".parse().unwrap(),
        actor: "ops".parse().unwrap(),
    };
    check(event(set), "52150801100218035a0d0805120461636d651a036f7073");
    let resolved = EventKind::UnknownResolved {
        reservation: ID,
        tenant: "acme".parse().unwrap(),
        user: Some("u1".parse().unwrap()),
        route: "chat".parse().unwrap(),
        actor: "ops".parse().unwrap(),
        reason: "why".into(),
    };
    check(
        event(resolved),
        "52340801100218036a2c0a100123456789abcdef0011223344556677120461636d651a0275312204636861742a036f70733203776879",
    );
    let frozen = EventKind::Frozen { scope: scope(), actor: "ops".parse().unwrap(), reason: "why".into() };
    let ended = EventKind::BoostEnded { lineage: Arc::new(key()), boost: AdjustmentId(ID.0) };
    check(
        event(ended),
        "52410801100218037a390a250a06746f6b656e73120461636d651a0275312204636861742a056c6172676532026575380112100123456789abcdef0011223344556677",
    );
    let hooked = EventKind::WebhookSet {
        tenant: "acme".parse().unwrap(),
        removed: true,
        actor: "ops".parse().unwrap(),
    };
    check(event(hooked), "5216080110021803ca010d0a0461636d6510011a036f7073");
    check(
        event(frozen),
        "522f08011002180372270a1b0a0461636d65120275311a046368617422056c617267652a02657512036f70731a03776879",
    );
}
