//! The bytes of every stored message, as they are on disks today. A test here that fails means
//! that what is written changed: then the format's version and its document change too.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::sync::Arc;

use holdfast_ledger::command::{
    AdvanceWebhook, Correct, EpochBounds, Freeze, PublishPlan, Release, Renew, ReportUnknown, Request,
    Reserve, ResolveUnknown, RollBack, SetTenant, SetWebhook, Settle, Start, Unfreeze,
};
use holdfast_ledger::plan::{Calendar, Override, Overrides, Period, Plan, TenantRecord};
use holdfast_ledger::record::{FreezeScope, Lane, LineageKey};
use holdfast_ledger::webhook::{Webhook, WebhookSecret, WebhookUrl};
use holdfast_ledger::{Adjust, Adjustment, AdjustmentId, Amounts, Command, ReservationId, Unit};
use holdfast_proto::log::{decode_entry, encode_entry};

const PLAN: &str = include_str!("../../scripts/plans/three-level.yaml");
const ID: ReservationId = ReservationId(0x0123_4567_89ab_cdef_0011_2233_4455_6677);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// One command in an entry of its own, so that the bytes are those on disk.
fn check(command: Command, golden: &str) {
    let payload = encode_entry(1, &[], [&command]);
    assert_eq!(hex(&payload), golden, "{command:?}");
    let (header, commands) = decode_entry(payload, 5, 2).unwrap();
    assert_eq!((header.index, header.term, header.stamp_ms), (5, 2, 1));
    assert_eq!(commands, [command]);
}

fn request() -> Request {
    Request {
        tenant: "acme".parse().unwrap(),
        user: Some("u1".parse().unwrap()),
        route: "chat".parse().unwrap(),
        model: Some("large".parse().unwrap()),
        region: Some("eu".parse().unwrap()),
        amounts: Amounts::NONE.with(Unit::Requests, 1).with(Unit::Tokens, 600).with(Unit::Micros, 0),
        minimum: Amounts::NONE,
        hold_ttl_ms: Some(30_000),
    }
}

#[test]
fn reserve() {
    let reserve = Reserve { id: ID, attempt: 2, request: request(), request_digest: [0xab; 32], key: None };
    check(
        Command::Reserve(reserve),
        "08011a6c0a6a0a100123456789abcdef001122334455667710021a320a0461636d65120275311a046368617422056c617267652a02657532110a04080110010a05080210d8040a02080438b0ea012220abababababababababababababababababababababababababababababababab",
    );
}

/// Fields that most commands do not have: the bytes of those without them stay as they are.
#[test]
fn reserve_up_to() {
    let minimum = Amounts::NONE.with(Unit::Tokens, 200);
    let request = Request { minimum, ..request() };
    let reserve = Reserve { id: ID, attempt: 2, request, request_digest: [0xab; 32], key: None };
    check(
        Command::Reserve(reserve),
        "08011a750a730a100123456789abcdef001122334455667710021a3b0a0461636d65120275311a046368617422056c617267652a02657532110a04080110010a05080210d8040a02080438b0ea0142070a05080210c8012220abababababababababababababababababababababababababababababababab",
    );
}

#[test]
fn reserve_with_a_key() {
    let key = Some("order-7".parse().unwrap());
    let reserve = Reserve { id: ID, attempt: 2, request: request(), request_digest: [0xab; 32], key };
    check(
        Command::Reserve(reserve),
        "08011a750a730a100123456789abcdef001122334455667710021a320a0461636d65120275311a046368617422056c617267652a02657532110a04080110010a05080210d8040a02080438b0ea012220abababababababababababababababababababababababababababababababab2a076f726465722d37",
    );
}

#[test]
fn start() {
    check(
        Command::Start(Start { id: ID, operation: "op-1".parse().unwrap() }),
        "08011a1a12180a100123456789abcdef001122334455667712046f702d31",
    );
}

#[test]
fn settle() {
    let actual = Amounts::NONE.with(Unit::Tokens, 200);
    check(
        Command::Settle(Settle { id: ID, operation: "op-1".parse().unwrap(), actual, estimated: false }),
        "08011a231a210a100123456789abcdef001122334455667712046f702d311a070a05080210c801",
    );
    check(
        Command::Settle(Settle { id: ID, operation: "op-1".parse().unwrap(), actual, estimated: true }),
        "08011a251a230a100123456789abcdef001122334455667712046f702d311a070a05080210c8012001",
    );
}

#[test]
fn correct() {
    let actual = Amounts::NONE.with(Unit::Tokens, 200);
    check(
        Command::Correct(Correct { id: ID, operation: "op-1".parse().unwrap(), actual }),
        "08011a236a210a100123456789abcdef001122334455667712046f702d311a070a05080210c801",
    );
}

#[test]
fn release() {
    check(Command::Release(Release { id: ID }), "08011a1422120a100123456789abcdef0011223344556677");
}

#[test]
fn renew() {
    check(
        Command::Renew(Renew { id: ID, extend_ms: 60_000 }),
        "08011a182a160a100123456789abcdef001122334455667710e0d403",
    );
}

#[test]
fn report_unknown() {
    let command = ReportUnknown { id: ID, operation: "op-1".parse().unwrap() };
    check(Command::ReportUnknown(command), "08011a1a32180a100123456789abcdef001122334455667712046f702d31");
}

#[test]
fn set_tenant() {
    let overrides: Overrides = [
        ("a".parse().unwrap(), Override::Unlimited),
        ("b".parse().unwrap(), Override::Amount { amount: 5, burst: Some(7) }),
    ]
    .into();
    let record = TenantRecord {
        tier: Some("beta".parse().unwrap()),
        users: [("u1".parse().unwrap(), overrides.clone())].into(),
        overrides,
    };
    let command = SetTenant {
        tenant: "acme".parse().unwrap(),
        record: Some(Arc::new(record)),
        expected_generation: Some(3),
        actor: "ops".parse().unwrap(),
    };
    check(
        Command::SetTenant(command),
        "08011a41423f0a0461636d6512300a046265746112050a0161120012090a01621a04080510071a160a02753112050a0161120012090a01621a0408051007180322036f7073",
    );
}

fn scope() -> FreezeScope {
    FreezeScope {
        tenant: "acme".parse().unwrap(),
        user: Some("u1".parse().unwrap()),
        route: "chat".parse().unwrap(),
        model: Some("large".parse().unwrap()),
        region: None,
    }
}

#[test]
fn unfreeze() {
    let command = Unfreeze { scope: scope(), actor: "ops".parse().unwrap(), reason: "looked into".into() };
    check(
        Command::Unfreeze(command),
        "08011a2d4a2b0a170a0461636d65120275311a046368617422056c6172676512036f70731a0b6c6f6f6b656420696e746f",
    );
}

#[test]
fn freeze() {
    let command = Freeze { scope: scope(), actor: "ops".parse().unwrap(), reason: "looked into".into() };
    check(
        Command::Freeze(command),
        "08011a2d7a2b0a170a0461636d65120275311a046368617422056c6172676512036f70731a0b6c6f6f6b656420696e746f",
    );
}

#[test]
fn webhooks() {
    let webhook = Webhook {
        url: WebhookUrl::new("https://acme.example/").unwrap(),
        secret: WebhookSecret::new(&[7; 24]).unwrap(),
    };
    let (tenant, actor) = ("acme".parse().unwrap(), "ops".parse().unwrap());
    let set = SetWebhook { tenant, webhook: Some(webhook), actor };
    check(
        Command::SetWebhook(set.clone()),
        "08011a41ca013e0a0461636d6512310a1568747470733a2f2f61636d652e6578616d706c652f12180707070707070707070707070707070707070707070707071a036f7073",
    );
    check(Command::SetWebhook(SetWebhook { webhook: None, ..set }), "08011a0eca010b0a0461636d651a036f7073");
    let advance = AdvanceWebhook { tenant: "acme".parse().unwrap(), cursor: 300 };
    check(Command::AdvanceWebhook(advance), "08011a0cd201090a0461636d6510ac02");
}

#[test]
fn resolve_unknown() {
    let command = ResolveUnknown {
        id: ID,
        actual: Amounts::NONE.with(Unit::Tokens, 200),
        actor: "ops".parse().unwrap(),
        reason: "looked into".into(),
    };
    check(
        Command::ResolveUnknown(command),
        "08011a2f722d0a100123456789abcdef001122334455667712070a05080210c8011a036f7073220b6c6f6f6b656420696e746f",
    );
}

#[test]
fn adjust() {
    let id = |number: u128| AdjustmentId(0x0123_4567_89ab_cdef_0011_2233_4455_6600 + number);
    let command = |number: u128, what| {
        let lineage = LineageKey {
            limit: "tokens".parse().unwrap(),
            tenant: Some("acme".parse().unwrap()),
            user: Some("u1".parse().unwrap()),
            route: None,
            model: Some("large".parse().unwrap()),
            region: None,
            lane: Lane::Enforced,
        };
        Command::Adjust(Box::new(Adjust {
            id: id(number),
            lineage: Arc::new(lineage),
            epoch_start_ms: (number == 1).then_some(5),
            what,
            actor: "ops".parse().unwrap(),
            reason: "why".into(),
        }))
    };
    check(
        command(1, Adjustment::Grant(7)),
        "08011a3f623d0a100123456789abcdef001122334455660112190a06746f6b656e73120461636d651a0275312a056c617267651805220208072a036f70733203776879",
    );
    check(
        command(2, Adjustment::Take(7)),
        "08011a3d623b0a100123456789abcdef001122334455660212190a06746f6b656e73120461636d651a0275312a056c61726765220210072a036f70733203776879",
    );
    check(
        command(3, Adjustment::Charge(7)),
        "08011a3d623b0a100123456789abcdef001122334455660312190a06746f6b656e73120461636d651a0275312a056c61726765220218072a036f70733203776879",
    );
    check(
        command(4, Adjustment::Correct(7)),
        "08011a3d623b0a100123456789abcdef001122334455660412190a06746f6b656e73120461636d651a0275312a056c61726765220220072a036f70733203776879",
    );
    check(
        command(5, Adjustment::SetUsed(0)),
        "08011a3d623b0a100123456789abcdef001122334455660512190a06746f6b656e73120461636d651a0275312a056c61726765220228002a036f70733203776879",
    );
    check(
        command(6, Adjustment::Boost { amount: 7, until_ms: 8 }),
        "08011a41623f0a100123456789abcdef001122334455660612190a06746f6b656e73120461636d651a0275312a056c6172676522063204080710082a036f70733203776879",
    );
    check(
        command(7, Adjustment::EndBoost { boost: id(6) }),
        "08011a5762550a100123456789abcdef001122334455660712190a06746f6b656e73120461636d651a0275312a056c61726765221c3a1a30313444325046324442535151473034393236443235415347362a036f70733203776879",
    );
}

#[test]
fn tick_and_rules() {
    check(Command::Tick, "08011a025200");
    check(Command::RaiseRules { rules_version: 2 }, "08011a045a020802");
}

#[test]
fn roll_back() {
    let command = RollBack { to: 3, expected_generation: Some(5), actor: "ops".parse().unwrap() };
    check(Command::RollBack(command), "08011a0ca20109080310051a036f7073");
}

#[test]
fn publish_plan() {
    let command = PublishPlan {
        expected_generation: Some(3),
        force: false,
        document: PLAN.into(),
        plan: Arc::new(Plan::parse(PLAN).unwrap()),
        actor: "ops".parse().unwrap(),
    };
    let payload = encode_entry(1, &[], [&Command::PublishPlan(command.clone())]);
    // The document stands in it word for word, between what is pinned here.
    let text = hex(&payload);
    let document = hex(PLAN.as_bytes());
    assert!(text.contains(&document));
    let (head, tail) = text.split_once(&document).unwrap();
    assert!(head.starts_with("08011a") && head.contains("3a") && head.contains("080312"), "{head}");
    assert_eq!(tail, "1a036f7073");
    assert_eq!(decode_entry(payload, 5, 2).unwrap().1, [Command::PublishPlan(command.clone())]);
    let forced = Command::PublishPlan(PublishPlan { force: true, ..command });
    let payload = encode_entry(1, &[], [&forced]);
    assert!(hex(&payload).ends_with(&format!("{document}1a036f70732001")));
    assert_eq!(decode_entry(payload, 5, 2).unwrap().1, [forced]);
}

#[test]
fn epoch_bounds() {
    let calendar = |period| Arc::new(Calendar { period, zone: "Asia/Tokyo".into() });
    let bounds = [
        EpochBounds { calendar: calendar(Period::Month(1)), bounds_ms: vec![1_000, 2_000, 300_000] },
        EpochBounds { calendar: calendar(Period::Days(30)), bounds_ms: vec![0, 1] },
    ];
    let payload = encode_entry(1_800_000_000_000, &bounds, []);
    assert_eq!(
        hex(&payload),
        "0880a0f1c2b134121b0a10080510011a0a417369612f546f6b796f1207e807d00fe0a71212160a100807101e1a0a417369612f546f6b796f12020001"
    );
    let (header, commands) = decode_entry(payload, 1, 1).unwrap();
    assert_eq!(header.stamp_ms, 1_800_000_000_000);
    assert_eq!((header.epoch_bounds.as_slice(), commands.len()), (bounds.as_slice(), 0));
}
