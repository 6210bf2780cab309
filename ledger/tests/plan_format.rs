//! The plan format: what documents mean, and what each fault in them is answered with.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use holdfast_ledger::Plan;
use holdfast_ledger::answer::Tier;
use holdfast_ledger::ids::{LimitId, TenantId, TierId, UserId};
use holdfast_ledger::plan::{
    Calendar, Level, Match, OnUnavailable, Override, Period, Price, Rewrite, Rollout, Rule, TenantRecord,
};
use holdfast_ledger::unit::{Amounts, Unit};

const THREE_LEVEL: &str = include_str!("../../scripts/plans/three-level.yaml");

/// A document around some limits, so that a test shows only what it is about. The limits begin on line 5.
fn with_limits(limits: &str) -> String {
    format!("schema: admissionBudget.v1\ncurrency: CNY\nroutes: [{{name: r}}]\nlimits:\n{limits}")
}

/// A document around the rest, with one limit of each level.
fn with_rest(rest: &str) -> String {
    let limits = "  g: {unit: tokens, scope: global, period: {limit: 100, every: day}}\n\
                  \x20 t: {unit: tokens, scope: tenant, period: {limit: 100, every: day, carry_over: 5}}\n\
                  \x20 b: {unit: requests, scope: tenant, bucket: {amount: 10}}\n\
                  \x20 m: {unit: micros, scope: tenant, period: {limit: 1 CNY, every: month}}\n\
                  \x20 u: {unit: requests, scope: tenant+user, bucket: {amount: 5, per: 1s}}\n";
    format!("{}{rest}", with_limits(limits))
}

/// The problems as they are shown.
fn problems(document: &str) -> Vec<String> {
    Plan::parse(document).unwrap_err().iter().map(ToString::to_string).collect()
}

#[track_caller]
fn assert_problem(document: &str, wanted: &str) {
    let found = problems(document);
    assert_eq!(found, [wanted], "of document:\n{document}");
}

fn limit_id(text: &str) -> LimitId {
    LimitId::new(text).unwrap()
}

fn rule(plan: &Plan, limit: &str, tenant: &str, user: Option<&str>) -> Rule {
    let record = plan.record_for(&TenantId::new(tenant).unwrap(), None);
    let user = user.map(|user| UserId::new(user).unwrap());
    plan.effective_rule(plan.limit(&limit_id(limit)).unwrap(), record, user.as_ref())
}

#[test]
fn the_three_level_sample_means_what_its_text_says() {
    let plan = Plan::parse(THREE_LEVEL).unwrap();
    let month = Arc::new(Calendar { period: Period::Month(1), zone: "Asia/Shanghai".into() });
    let day = Arc::new(Calendar { period: Period::Day, zone: "Asia/Shanghai".into() });
    let bucket = |amount| Rule::Bucket { amount, per_ms: 1000, burst: amount };
    let total = |limit, calendar: &Arc<Calendar>| Rule::Period {
        limit,
        calendar: Arc::clone(calendar),
        carry_over: 0,
        carry_debt: true,
    };
    assert_eq!(rule(&plan, "global-qps", "acme", None), bucket(500));
    assert_eq!(rule(&plan, "global-tokens-month", "beta", None), total(500_000_000, &month));
    assert_eq!(rule(&plan, "tenant-qps", "acme", None), bucket(50));
    assert_eq!(rule(&plan, "tenant-qps", "beta", None), bucket(10));
    assert_eq!(rule(&plan, "tenant-tokens-month", "acme", None), total(50_000_000, &month));
    assert_eq!(rule(&plan, "tenant-tokens-month", "beta", None), total(5_000_000, &month));
    assert_eq!(rule(&plan, "tenant-tokens-month", "never-seen", None), total(5_000_000, &month));
    assert_eq!(rule(&plan, "tenant-money-month", "acme", None), total(4_000_000_000, &month));
    assert_eq!(
        rule(&plan, "tenant-money-month", "beta", None),
        Rule::Unlimited { calendar: Some(Arc::clone(&month)) }
    );
    assert_eq!(rule(&plan, "user-qps", "acme", Some("anyone")), bucket(5));
    assert_eq!(rule(&plan, "user-requests-day", "acme", Some("anyone")), total(200, &day));
    assert_eq!(plan.calendars(), [day, month]);
    assert_eq!(plan.currency.as_deref(), Some("CNY"));
}

#[test]
fn a_zone_that_does_not_exist_is_one_problem_among_the_others() {
    let wrong = THREE_LEVEL.replacen("unit: requests", "unit: reqests", 1);
    for document in [THREE_LEVEL, &wrong] {
        let said = Plan::parse_with_zones(document, &|zone| zone != "Asia/Shanghai").unwrap_err();
        let unknown: Vec<_> = said.iter().filter(|error| error.path.ends_with(".zone")).collect();
        assert_eq!(unknown.len(), 4, "{said:?}");
        for error in unknown {
            assert!(document.lines().nth(error.line - 1).unwrap().contains("Asia/Shanghai"), "{error}");
            assert_eq!(error.problem, "is \"Asia/Shanghai\"; the time zone data does not have it");
        }
        assert_eq!(said.iter().any(|error| error.problem.contains("reqests")), document == wrong, "{said:?}");
        assert!(said.is_sorted_by_key(|error| error.line), "{said:?}");
    }
    assert!(Plan::parse_with_zones(THREE_LEVEL, &|zone| zone == "Asia/Shanghai").is_ok());
}

#[test]
fn a_route_and_a_limit_have_documented_defaults() {
    let plan =
        Plan::parse(&with_limits("  l: {unit: requests, scope: global, bucket: {amount: 7}}\n")).unwrap();
    let route = &plan.routes[0];
    assert_eq!(route.matches, Match { route: vec!["r".into()], ..Match::default() });
    assert_eq!((route.hold_ttl_ms, route.hold_ttl_ms_max), (60_000, 26 * 3_600_000));
    assert_eq!((route.usage_deadline_ms, route.usage_deadline_ms_max), (900_000, 26 * 3_600_000));
    assert_eq!(route.correction_window_ms, 24 * 3_600_000);
    assert_eq!((route.priority, route.rollout, &route.emergency), (0, Rollout::Enforce, &None));
    assert_eq!(
        (route.debt_max, route.execution_max, route.reservation_max),
        (Amounts::NONE, Amounts::NONE, Amounts::NONE)
    );
    assert_eq!(plan.limits[0].rule, Rule::Bucket { amount: 7, per_ms: 1000, burst: 7 });
    assert_eq!(plan.limits[0].ladder, None);
    assert_eq!((plan.id_window_ms, plan.expiring_grace_ms), (900_000, 1_000));
}

#[test]
fn a_correction_window_has_bounds() {
    let head = "schema: admissionBudget.v1\nlimits: {}\nroutes:\n";
    let plan = Plan::parse(&format!("{head}- {{name: r, correction_window: 35d}}\n")).unwrap();
    assert_eq!(plan.routes[0].correction_window_ms, 35 * 86_400_000);
    for wrong in ["36d", "0ms", "1.5h"] {
        let problems =
            Plan::parse(&format!("{head}- {{name: r, correction_window: {wrong}}}\n")).unwrap_err();
        assert!(problems[0].to_string().contains("routes[0].correction_window"), "{problems:?}");
    }
}

#[test]
fn a_longest_hold_shorter_than_the_usual_default_bounds_the_default_too() {
    let head = "schema: admissionBudget.v1\nlimits: {}\nroutes:\n";
    let plan =
        Plan::parse(&format!("{head}- {{name: r, hold_ttl_max: 30s, usage_deadline: 30d}}\n")).unwrap();
    assert_eq!((plan.routes[0].hold_ttl_ms, plan.routes[0].hold_ttl_ms_max), (30_000, 30_000));
    assert_eq!(plan.routes[0].usage_deadline_ms_max, 30 * 86_400_000);
    assert_problem(
        &format!("{head}- {{name: r, hold_ttl: 2m, hold_ttl_max: 30s}}\n"),
        "line 4: routes[0].hold_ttl_max: is 30000 ms, less than \"hold_ttl\" with 120000 ms",
    );
}

#[test]
fn every_way_to_write_a_limit_is_understood() {
    let plan = Plan::parse(&with_limits(
        "  a: {unit: slots, scope: tenant+route, concurrency: 5}\n\
         \x20 b: {unit: slots, scope: user, concurrency: {limit: unlimited}}\n\
         \x20 c: {unit: micros, scope: tenant + user + model + region, bucket: {amount: 0.25 CNY, per: 1m, burst: 1 CNY}}\n\
         \x20 d: {unit: tokens, scope: global, period: {limit: 30_000_000_000, every: week, starts_on: sunday}, ladder: none}\n\
         \x20 e: {unit: tokens, scope: global, period: {limit: 0, every: 30d, carry_debt: false}, ladder: {alert: 50}}\n\
         \x20 f: {unit: tokens, scope: global, period: {limit: 18446744073709551615, every: lifetime}}\n\
         \x20 g: {unit: tokens, scope: global, period: {limit: 1, every: year, starts_on: april, zone: Asia/Tokyo}}\n\
         \x20 h: {unit: tokens, scope: global, period: {limit: 1, every: 90s, carry_over: 3}, overdraft_max: 9}\n\
         \x20 i: {unit: tokens, scope: global, bucket: {amount: 10000, per: 1}, match: {model: [x, \"gpt-*\"]}}\n",
    ))
    .unwrap();
    let by = |id: &str| plan.limit(&limit_id(id)).unwrap();
    assert_eq!(by("a").rule, Rule::Concurrency { limit: 5 });
    assert!(by("a").scope.route && by("a").scope.level == Level::Tenant && by("a").ladder.is_none());
    assert_eq!(by("b").rule, Rule::Unlimited { calendar: None });
    assert_eq!(by("c").rule, Rule::Bucket { amount: 250_000, per_ms: 60_000, burst: 1_000_000 });
    assert_eq!(by("c").scope.to_string(), "tenant+user+model+region");
    let Rule::Period { limit, calendar, .. } = &by("d").rule else { panic!("{:?}", by("d").rule) };
    assert_eq!((*limit, calendar.period, calendar.zone.as_str()), (30_000_000_000, Period::Week(7), "UTC"));
    assert_eq!(by("d").ladder, None);
    assert!(matches!(&by("e").rule, Rule::Period { limit: 0, carry_debt: false, .. }));
    assert_eq!(by("e").ladder.map(|ladder| (ladder.alert_percent, ladder.degrade_percent)), Some((50, 95)));
    assert!(matches!(&by("f").rule, Rule::Period { limit: u64::MAX, .. }));
    let Rule::Period { calendar, .. } = &by("g").rule else { panic!("{:?}", by("g").rule) };
    assert_eq!((calendar.period, calendar.zone.as_str()), (Period::Year(4), "Asia/Tokyo"));
    assert!(matches!(&by("h").rule, Rule::Period { carry_over: 3, .. }));
    assert_eq!(by("h").overdraft_max, Some(9));
    assert_eq!(by("i").rule, Rule::Bucket { amount: 10_000, per_ms: 1, burst: 10_000 });
    assert_eq!(by("i").matches.model, ["x", "gpt-*"]);
}

#[test]
fn the_nearest_word_on_a_subject_decides_its_rule() {
    let rest = "tiers:\n  gold: {limits: {t: 300, u: {amount: 30, burst: 60}}}\n\
                tenants:\n  acme:\n    tier: gold\n    limits: {t: unlimited}\n    users: {root: {limits: {u: 0}}}\n  \
                beta: {limits: {b: 0, m: 4000 CNY}}\n\
                defaults: {user: {limits: {u: 6}}}\n";
    let plan = Plan::parse(&with_rest(rest)).unwrap();
    assert!(matches!(rule(&plan, "t", "acme", None), Rule::Unlimited { calendar: Some(_) }), "the record");
    assert_eq!(
        rule(&plan, "u", "acme", Some("x")),
        Rule::Bucket { amount: 30, per_ms: 1000, burst: 60 },
        "the tier"
    );
    assert_eq!(
        rule(&plan, "u", "acme", Some("root")),
        Rule::Bucket { amount: 0, per_ms: 1000, burst: 0 },
        "the user"
    );
    assert_eq!(
        rule(&plan, "u", "beta", Some("x")),
        Rule::Bucket { amount: 6, per_ms: 1000, burst: 6 },
        "all users"
    );
    assert_eq!(
        rule(&plan, "b", "beta", None),
        Rule::Bucket { amount: 0, per_ms: 1000, burst: 0 },
        "0 in the record"
    );
    assert!(matches!(rule(&plan, "m", "beta", None), Rule::Period { limit: 4_000_000_000, .. }), "money");
    assert!(
        matches!(rule(&plan, "t", "none", None), Rule::Period { limit: 100, carry_over: 5, .. }),
        "the limit"
    );
    let set = TenantRecord { tier: Some(TierId::new("gold").unwrap()), ..TenantRecord::default() };
    let t = plan.limit(&limit_id("t")).unwrap();
    assert!(
        matches!(plan.effective_rule(t, Some(&set), None), Rule::Period { limit: 300, .. }),
        "a set record"
    );
    let g = plan.limit(&limit_id("g")).unwrap();
    assert!(matches!(plan.effective_rule(g, Some(&set), None), Rule::Period { limit: 100, .. }), "global");
}

/// Field case 47: refused whole, with every problem named by its line.
#[test]
fn all_problems_of_a_document_are_reported_at_once_by_line() {
    let document = "\
schema: admissionBudget.v2
currancy: CNY
routes:
  - name: a
    hold_ttl: 15 parsecs
    reservation_max: { tokens: 0 }
  - match: { route: 'b c' }
limits:
  l1: { unit: token, scope: global, period: { limit: -5, every: month } }
  l2: { unit: slots, scope: tenant, bucket: { amount: 5 } }
  l3: { unit: tokens, scope: tennant, period: { limit: 1.5, every: fortnight } }
  l4:
    unit: requests
    unit: tokens
    scope: user
    bucket: { amount: 18446744073709551616, burst: 0 }
tiers:
  gold: { limits: { l5: 1, l4: 2 } }
tenants:
  acme: { tier: golf }
";
    let found = problems(document);
    let wanted = [
        "line 1: schema: must be admissionBudget.v1, is \"admissionBudget.v2\"",
        "line 2: currancy: is not a key that is known here; did you mean \"currency\"?",
        "line 5: routes[0].hold_ttl: ends in \"parsecs\"; a duration is a whole number with ms, s, m, h or d, such as 15m",
        "line 6: routes[0].reservation_max.tokens: is 0; at least 1 is needed",
        "line 7: routes[1]: \"name\" is missing",
        "line 7: routes[1].match.route: is \"b c\" with ' '; a pattern is a name, or the beginning of one and * at the end",
        "line 9: limits.l1.unit: must be one of requests, tokens, slots, micros, is \"token\"; did you mean \"tokens\"?",
        "line 9: limits.l1.period.limit: is -5; it must not be negative",
        "line 10: limits.l2.bucket: cannot count slots, which are held and never spent; they need \"concurrency\"",
        "line 11: limits.l3.scope: must be global, tenant or tenant+user, with any of +route, +model, +region, is \"tennant\"; did you mean \"tenant\"?",
        "line 11: limits.l3.period.limit: is 1.5; it must be a whole number, written out",
        "line 11: limits.l3.period.every: is \"fortnight\"; a period is hour, day, week, month, year, lifetime, days such as 30d, or seconds such as 60s",
        "line 14: limits.l4.unit: stands twice; first on line 13",
        "line 16: limits.l4.bucket.amount: is 18446744073709551616; at most 18446744073709551615 is possible",
        "line 18: tiers.gold.limits.l5: is not a limit of the plan",
        "line 20: tenants.acme.tier: is \"golf\", which is not a tier of the plan; did you mean \"gold\"?",
    ];
    for (found, wanted) in found.iter().zip(wanted) {
        assert_eq!(found, wanted);
    }
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
}

#[test]
fn each_fault_of_a_limit_has_its_answer() {
    let table = [
        ("unit: tokens, scope: global", "", "needs one of \"bucket\", \"period\", \"concurrency\""),
        (
            "unit: tokens, scope: global, concurrency: 5",
            ".concurrency",
            "cannot count tokens; what is held at the same time has the unit slots",
        ),
        (
            "unit: slots, scope: global, period: {limit: 1, every: day}",
            ".period",
            "cannot count slots, which are held and never spent; they need \"concurrency\"",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: 1}, period: {limit: 1, every: day}",
            ".period",
            "stands beside \"bucket\"; a limit has one of them (period can be a second limit)",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: 1, per: 0s}",
            ".bucket.per",
            "is 0 ms; at least 1 ms is needed",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: 1, per: 367d}",
            ".bucket.per",
            "is 31708800000 ms; at most 31622400000 ms is possible",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: 1, burst: 0}",
            ".bucket",
            "has burst 0, so it never admits anything",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: 0, burst: 5}",
            ".bucket",
            "has amount 0, which admits nothing, and burst 5",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: unlimited, burst: 5}",
            ".bucket",
            "is unlimited and has a burst; leave out the burst",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: unlimted}",
            ".bucket.amount",
            "must be an amount or unlimited, is \"unlimted\"; did you mean \"unlimited\"?",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: \"5\"}",
            ".bucket.amount",
            "must be an amount, is text in quotes; leave out the quotes",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: 1e9}",
            ".bucket.amount",
            "is 1e9; it must be a whole number, written out",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: 0x10}",
            ".bucket.amount",
            "is \"0x10\"; it must be a whole number such as 50 or 5_000_000",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: 010}",
            ".bucket.amount",
            "is 010; write it without the leading 0",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: 4 CNY}",
            ".bucket.amount",
            "is \"4 CNY\"; it must be a whole number such as 50 or 5_000_000",
        ),
        (
            "unit: micros, scope: global, bucket: {amount: 4 USD}",
            ".bucket.amount",
            "is in \"USD\"; the plan's currency is CNY",
        ),
        (
            "unit: micros, scope: global, bucket: {amount: 0.0000001 CNY}",
            ".bucket.amount",
            "is \"0.0000001\"; money is written as 4000 or 0.25, with at most 6 digits after the point",
        ),
        (
            "unit: micros, scope: global, bucket: {amount: 18446744073710 CNY}",
            ".bucket.amount",
            "is 18446744073710; at most 18446744073709551615 millionths are possible",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: }",
            ".bucket.amount",
            "must be an amount or unlimited, is empty",
        ),
        ("unit: tokens, scope: global, bucket: [1]", ".bucket", "must be a mapping, is a list"),
        (
            "unit: tokens, scope: global, period: {limit: 18446744073709551615, every: day, carry_over: 1}",
            ".period",
            "is 18446744073709551615 with a carry_over of 1; together at most 18446744073709551615 are possible",
        ),
        (
            "unit: tokens, scope: global, period: {limit: 1, every: lifetime, carry_over: 1}",
            ".period.carry_over",
            "means nothing for a lifetime, which has no next period",
        ),
        (
            "unit: tokens, scope: global, period: {limit: 1, every: 1500ms}",
            ".period.every",
            "is \"1500ms\"; a period is a whole number of seconds, at least 1, at most 366 days",
        ),
        (
            "unit: tokens, scope: global, period: {limit: 1, every: day, starts_on: 3}",
            ".period.starts_on",
            "means something only for a week, a month or a year",
        ),
        (
            "unit: tokens, scope: global, period: {limit: 1, every: month, starts_on: 29}",
            ".period.starts_on",
            "is 29; at most 28 is possible",
        ),
        (
            "unit: tokens, scope: global, period: {limit: 1, every: week, starts_on: mondai}",
            ".period.starts_on",
            "must be one of monday, tuesday, wednesday, thursday, friday, saturday, sunday, is \"mondai\"; did you mean \"monday\"?",
        ),
        (
            "unit: tokens, scope: global, period: {limit: 1, every: day, zone: \"../etc\"}",
            ".period.zone",
            "is \"../etc\"; a time zone is written like UTC or Asia/Shanghai",
        ),
        (
            "unit: tokens, scope: global, period: {limit: 1, every: 60s, zone: UTC}",
            ".period.zone",
            "means nothing for a period that no calendar cuts",
        ),
        (
            "unit: tokens, scope: global, period: {limit: 1, every: day, carry_debt: no}",
            ".period.carry_debt",
            "must be true or false, is \"no\"",
        ),
        (
            "unit: tokens, scope: global, period: {limit: 1, every: day}, ladder: {alert: 96%}",
            ".ladder",
            "alerts at 96%, after it degrades at 95%",
        ),
        (
            "unit: tokens, scope: global, period: {limit: 1, every: day}, ladder: {degrade: 101}",
            ".ladder.degrade",
            "is 101%; at most 100% is possible",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: 1}, ladder: {alert: 50}",
            ".ladder",
            "means nothing for a bucket, which has no total to be a share of",
        ),
        (
            "unit: tokens, scope: global+global, bucket: {amount: 1}",
            ".scope",
            "must be global, tenant or tenant+user, with any of +route, +model, +region, is \"global+global\"; it stands there twice",
        ),
        (
            "unit: tokens, scope: tenant+route+route, bucket: {amount: 1}",
            ".scope",
            "must be global, tenant or tenant+user, with any of +route, +model, +region, is \"tenant+route+route\"; it stands there twice",
        ),
        (
            "unit: tokens, scope: global, bucket: {amount: 1}, match: {route: []}",
            ".match.route",
            "is an empty list, which nothing would match; leave the part out to match everything",
        ),
    ];
    for (limit, path, problem) in table {
        assert_problem(
            &with_limits(&format!("  l: {{{limit}}}\n")),
            &format!("line 5: limits.l{path}: {problem}"),
        );
    }
}

#[test]
fn each_fault_of_the_rest_has_its_answer() {
    let table = [
        (
            "tenants: {a: {limits: {g: 1}}}",
            "tenants.a.limits.g: is a limit of the global level, which has one amount for all",
        ),
        (
            "tenants: {a: {users: {x: {limits: {t: 1}}}}}",
            "tenants.a.users.x.limits.t: is a limit of the tenant level; users have limits of the user level",
        ),
        (
            "tenants: {a: {limits: {t: {amount: 1, burst: 2}}}}",
            "tenants.a.limits.t: has a burst; only buckets have one",
        ),
        ("tenants: {a: {limits: {t: {burst: 2}}}}", "tenants.a.limits.t: \"amount\" is missing"),
        (
            "tenants: {a: {limits: {t: 18446744073709551613}}}",
            "tenants.a.limits.t: is 18446744073709551613 with a carry_over of 5; together at most 18446744073709551615 are possible",
        ),
        (
            "tenants: {a: {limits: {b: {amount: 1, burst: 0}}}}",
            "tenants.a.limits.b: has burst 0, so it never admits anything",
        ),
        (
            "tenants: {a b: {}}",
            "tenants.a b: is a tenant id that has the character ' '; allowed are A-Z a-z 0-9 and, after the first, . _ : @ / + -",
        ),
        ("tenants: [a]", "tenants: must be a mapping from tenants to their records, is a list"),
        ("defaults: {tier: x}", "defaults.tier: is \"x\", which is not a tier of the plan"),
        ("id_window: 1s", "id_window: is 1000 ms; at least 10000 ms is needed"),
        ("events_kept: 1s", "events_kept: is 1000 ms; at least 60000 ms is needed"),
        ("expiring_grace: 0", "expiring_grace: is 0 ms; at least 1 ms is needed"),
        ("tiers: {x: {limits: {T: 1}}}", "tiers.x.limits.T: is not a limit of the plan; did you mean \"t\"?"),
        ("currency: EUR", "currency: stands twice; first on line 2"),
        (
            "<<: {}",
            "<<: is not a key that is known here; known are schema, currency, prices, id_window, expiring_grace, events_kept, routes, limits, tiers, tenants, defaults",
        ),
    ];
    for (rest, problem) in table {
        assert_problem(&with_rest(rest), &format!("line 10: {problem}"));
    }
}

#[test]
fn each_fault_of_a_route_has_its_answer() {
    let table = [
        (
            "- {name: r, rollout: enforced}",
            "line 3: routes[0].rollout: must be enforce, shadow or a percentage such as 5%, is \"enforced\"; did you mean \"enforce\"?",
        ),
        ("- {name: r, rollout: 101%}", "line 3: routes[0].rollout: is 101%; at most 100% is possible"),
        (
            "- {name: r, rollout: {percent: 5%, by: users}}",
            "line 3: routes[0].rollout.by: must be tenant or user, is \"users\"; did you mean \"user\"?",
        ),
        ("- {name: r, rollout: {by: user}}", "line 3: routes[0].rollout: \"percent\" is missing"),
        (
            "- {name: r, estimator: md5:1}",
            "line 3: routes[0].estimator: is \"md5:1\"; a digest is sha256: and 64 hexadecimal digits in lower case",
        ),
        (
            "- {name: r, priority: 4294967296}",
            "line 3: routes[0].priority: is 4294967296; at most 4294967295 is possible",
        ),
        (
            "- {name: r, debt_max: {coins: 1}}",
            "line 3: routes[0].debt_max.coins: is not a unit (requests, tokens, slots, micros)",
        ),
        ("- {name: r}\n- {name: r}", "line 4: routes[1]: has the name \"r\" of the route on line 3"),
        (
            "- {name: r, match: {}}\n- {name: s}",
            "line 4: routes[1]: is never reached: the route on line 3 takes everything",
        ),
        (
            "- {name: r, emergency: {per_gateway_max: {tokens: 9}, total_max: {tokens: 8}}}",
            "line 3: routes[0].emergency: gives one gateway 9 tokens, more than all together (8)",
        ),
        (
            "- {name: r, emergency: {per_gateway_max: {tokens: 9}, total_max: {}}}",
            "line 3: routes[0].emergency: bounds tokens per gateway and not in total",
        ),
        ("- 5", "line 3: routes[0]: must be a mapping, is a single value"),
        ("  {}", "line 3: routes: must be a list of routes, is a mapping"),
        ("  []", "line 3: routes: is an empty list; without a route nothing is admitted"),
    ];
    for (routes, problem) in table {
        let document = format!("schema: admissionBudget.v1\nroutes:\n{routes}\nlimits: {{}}\n");
        assert_problem(&document, problem);
    }
}

#[test]
fn what_is_not_a_plain_document_is_refused_with_its_line() {
    let table = [
        ("", "line 1: document: is empty"),
        ("# only a comment\n", "line 1: document: is empty"),
        (
            "a: &x 1\nb: *x\n",
            "line 1: document: uses a YAML anchor (&); write the value out where it is needed",
        ),
        ("a: 1\nb: !!str 5\n", "line 2: document: uses a YAML tag (!); values need none here"),
        ("a: 1\n---\nb: 2\n", "line 2: document: has a second YAML document; one is allowed"),
        ("a: 1\n? [x]\n: 2\n", "line 2: document: has a list or mapping as a key; keys are plain words"),
        ("5", "line 1: document: must be a mapping, is a single value"),
    ];
    for (document, problem) in table {
        assert_problem(document, problem);
    }
    let broken = problems("schema: admissionBudget.v1\nroutes: [\n");
    assert!(broken.len() == 1 && broken[0].starts_with("line "), "{broken:?}");
    assert!(Plan::parse("{}").unwrap_err().len() >= 3, "each missing key is named");
}

#[test]
fn hostile_documents_are_refused_by_a_named_bound() {
    use holdfast_ledger::limits::{PLAN_BYTES_MAX, PLAN_DEPTH_MAX, PLAN_ERRORS_MAX, PLAN_NODES_MAX};
    let too_long = "x".repeat(PLAN_BYTES_MAX + 1);
    assert_eq!(problems(&too_long), ["line 1: document: is 1048577 bytes long; at most 1048576 are allowed"]);
    let deep = "- ".repeat(PLAN_DEPTH_MAX + 1);
    assert_eq!(problems(&deep), ["line 1: document: is nested more than 12 levels deep"]);
    let bracket = problems(&"[".repeat(100_000));
    assert_eq!(bracket.len(), 1, "{bracket:?}");
    let wide = format!("[{}]", "a,".repeat(PLAN_NODES_MAX));
    assert_eq!(problems(&wide), ["line 1: document: has more than 200000 values"]);
    let faulty: String = (0..30_000).map(|at| format!("key-{at}: 1\n")).collect();
    let found = problems(&faulty);
    assert_eq!(found.len(), PLAN_ERRORS_MAX);
    assert!(found.iter().any(|line| line.contains("has more than 1000 problems")), "the cut is not silent");
}

#[test]
fn a_tenants_record_is_read_under_its_plan() {
    let plan = Plan::parse(&with_rest("tiers: {gold: {}}\n")).unwrap();
    let document = "schema: tenantRecord.v1\ntier: gold\nlimits:\n  m: 4000 CNY\n  b: {amount: 5, burst: 9}\nusers:\n  x: {limits: {u: unlimited}}\n";
    let record = TenantRecord::parse(document, &plan).unwrap();
    assert_eq!(record.tier, Some(TierId::new("gold").unwrap()));
    assert_eq!(record.overrides[&limit_id("m")], Override::Amount { amount: 4_000_000_000, burst: None });
    assert_eq!(record.overrides[&limit_id("b")], Override::Amount { amount: 5, burst: Some(9) });
    assert_eq!(record.users[&UserId::new("x").unwrap()][&limit_id("u")], Override::Unlimited);
    assert_eq!(plan.check_record(&record), []);

    let faults = TenantRecord::parse("tier: golt\nlimits:\n  q: 1\n  g: 5\nuser: {}\n", &plan).unwrap_err();
    let shown: Vec<_> = faults.iter().map(ToString::to_string).collect();
    let wanted = [
        "line 1: tier: is \"golt\", which is not a tier of the plan; did you mean \"gold\"?",
        "line 3: limits.q: is not a limit of the plan",
        "line 4: limits.g: is a limit of the global level, which has one amount for all",
        "line 5: user: is not a key that is known here; did you mean \"users\"?",
    ];
    assert_eq!(shown, wanted);

    let other = Plan::parse(
        &with_limits("  m: {unit: tokens, scope: tenant, concurrency: 1}\n").replace("tokens", "slots"),
    )
    .unwrap();
    let faults: Vec<_> = other.check_record(&record).into_iter().map(|fault| fault.path).collect();
    assert_eq!(faults, ["tier", "limits.b", "users.x.limits.u"]);
}

#[test]
fn a_diff_names_what_changes_and_nothing_else() {
    let before = Plan::parse(&with_rest("tiers: {gold: {limits: {t: 5}}}\n")).unwrap();
    assert_eq!(before.diff(&before.clone()), []);
    let text = with_rest("tiers: {silver: {limits: {t: 6}}}\ntenants: {acme: {tier: silver}}\n")
        .replace("amount: 5, per: 1s", "amount: 6, per: 1s, burst: 9")
        .replace("{name: r}", "{name: r, hold_ttl: 2m}");
    let changes: Vec<_> = before.diff(&Plan::parse(&text).unwrap()).iter().map(ToString::to_string).collect();
    let wanted = [
        "~ limits.u.amount: 5 → 6",
        "~ limits.u.burst: 5 → 9",
        "~ routes.r.hold_ttl: 60000 ms → 120000 ms",
        "+ tenants.acme: tier: silver",
        "- tiers.gold: limits.t: 5",
        "+ tiers.silver: limits.t: 6",
    ];
    assert_eq!(changes, wanted);
}

#[test]
fn patterns_match_names_and_beginnings_of_names() {
    use holdfast_ledger::command::Request;
    use holdfast_ledger::ids::{ModelName, RouteName};
    let plan = Plan::parse(
        "schema: admissionBudget.v1\nlimits: {}\nroutes:\n\
         - {name: big, match: {route: \"chat.*\", model: [x-1, \"gpt-*\"]}}\n\
         - {name: chat, match: {route: [\"chat.*\", talk]}}\n",
    )
    .unwrap();
    let request = |route: &str, model: Option<&str>| Request {
        tenant: TenantId::new("t").unwrap(),
        user: None,
        route: RouteName::new(route).unwrap(),
        model: model.map(|model| ModelName::new(model).unwrap()),
        region: None,
        amounts: Amounts::NONE.with(Unit::Tokens, 1),
        minimum: Amounts::NONE,
        hold_ttl_ms: None,
    };
    let table = [
        ("chat.generate", Some("gpt-4"), Some("big")),
        ("chat.generate", Some("gpt"), Some("chat")),
        ("chat.", Some("x-1"), Some("big")),
        ("chat.generate", Some("x-11"), Some("chat")),
        ("chat.generate", None, Some("chat")),
        ("talk", Some("x-1"), Some("chat")),
        ("talking", None, None),
        ("chat", None, None),
    ];
    for (route, model, wanted) in table {
        let found = plan.route_for(&request(route, model)).map(|route| route.name.as_str());
        assert_eq!(found, wanted, "{route} {model:?}");
    }
}

/// A document with one route that tells the gateways something.
fn with_route(keys: &str) -> String {
    format!(
        "schema: admissionBudget.v1\ncurrency: CNY\nroutes:\n  - name: r\n{keys}limits:\n\
         \x20 t: {{unit: tokens, scope: tenant, period: {{limit: 100, every: day}}}}\n"
    )
}

#[test]
fn what_gateways_are_told() {
    let text = with_route(
        "    degrade:\n\
         \x20     light: {max_tokens: 2048, without: tools}\n\
         \x20     heavy: {model: {large: small, \"huge-*\": large}, without: [tools, reasoning_effort]}\n\
         \x20   on_unavailable: open\n",
    );
    let route = &Plan::parse(&text).unwrap().routes[0];
    assert_eq!(route.on_unavailable, OnUnavailable::Open);
    assert_eq!(route.degrade.at(Tier::Normal), None);
    let light = route.degrade.at(Tier::DegradedLight).unwrap();
    assert_eq!((light.max_tokens, light.model("large")), (Some(2048), None));
    let heavy = route.degrade.at(Tier::DegradedHeavy).unwrap();
    // What the lighter tier does, the heavier one does too unless it says otherwise.
    assert_eq!(heavy.max_tokens, Some(2048));
    assert_eq!(heavy.without, ["tools", "reasoning_effort"]);
    let model = |name| heavy.model(name).map(|model| model.as_str());
    assert_eq!((model("large"), model("huge-2"), model("small")), (Some("small"), Some("large"), None));

    let plain = &Plan::parse(&with_route("")).unwrap().routes[0];
    assert_eq!(
        (plain.on_unavailable, plain.degrade.heavy.clone()),
        (OnUnavailable::Closed, Rewrite::default())
    );
}

#[test]
fn faults_in_what_gateways_are_told() {
    for (keys, wanted) in [
        (
            "    on_unavailable: opn\n",
            "line 5: routes[0].on_unavailable: must be one of closed, shard, open, is \"opn\"; did you mean \"open\"?",
        ),
        (
            "    degrade: {heavy: {model: small}}\n",
            "line 5: routes[0].degrade.heavy.model: must be a mapping from models to those that take their place, is a single value",
        ),
        (
            "    degrade: {light: {max_tokens: 0}}\n",
            "line 5: routes[0].degrade.light.max_tokens: is 0; at least 1 is needed",
        ),
        (
            "    degrade: {light: {without: [messages]}}\n",
            "line 5: routes[0].degrade.light.without[0]: is \"messages\", which a request cannot do without",
        ),
        (
            "    degrade: {light: {without: \"a b\"}}\n",
            "line 5: routes[0].degrade.light.without: is \"a b\"; a field is 1 to 64 of a-z and _",
        ),
        (
            "    degrade: {heavy: {model: {\"a b\": c}}}\n",
            "line 5: routes[0].degrade.heavy.model.a b: is \"a b\" with ' '; a pattern is a name, or the beginning of one and * at the end",
        ),
    ] {
        assert_problem(&with_route(keys), wanted);
    }
}

#[test]
fn prices_and_weights() {
    let text = with_rest(
        "prices:\n\
         \x20 unknown: {input: 9 CNY, output: 90 CNY}\n\
         \x20 models:\n\
         \x20   large: {input: 2.5 CNY, output: 10_000_000, cached: 0.25 CNY}\n\
         \x20   \"free-*\": {input: 0, output: 0}\n\
         tiers: {gold: {weight: 4}, plain: {limits: {t: 5}}}\n",
    );
    let plan = Plan::parse(&text).unwrap();
    let prices = plan.prices.as_ref().unwrap();
    let large = Price { input: 2_500_000, output: 10_000_000, cached: 250_000, reasoning: 10_000_000 };
    assert_eq!(prices.price("large"), Some(large));
    assert_eq!(prices.price("free-1"), Some(Price::default()));
    assert_eq!(prices.price("other").map(|price| price.reasoning), Some(90_000_000));
    assert_eq!(plan.weights, [(TierId::new("gold").unwrap(), 4)].into());

    let before = Plan::parse(&with_rest("tiers: {gold: {}, plain: {limits: {t: 5}}}\n")).unwrap();
    let changes: Vec<_> = before.diff(&plan).iter().map(ToString::to_string).collect();
    assert_eq!(
        changes,
        [
            "+ prices: models.free-*: input 0, output 0, cached 0, reasoning 0, models.large: input 2500000, \
             output 10000000, cached 250000, reasoning 10000000, unknown: input 9000000, output 90000000, \
             cached 9000000, reasoning 90000000",
            "+ tiers.gold.weight: 4",
        ]
    );
}

#[test]
fn faults_in_prices_and_weights() {
    for (rest, wanted) in [
        (
            "prices: {unknown: refus, models: {}}\n",
            "line 10: prices.unknown: must be one of refuse, is \"refus\"; did you mean \"refuse\"?",
        ),
        ("prices: {}\n", "line 10: prices: \"models\" is missing"),
        ("prices: {models: {m: {input: 1}}}\n", "line 10: prices.models.m: \"output\" is missing"),
        (
            "prices: {models: {m: {input: -1, output: 1}}}\n",
            "line 10: prices.models.m.input: is -1; it must not be negative",
        ),
        (
            "prices: {models: {\"a b\": {input: 1, output: 1}}}\n",
            "line 10: prices.models.a b: is \"a b\" with ' '; a pattern is a name, or the beginning of one and * at the end",
        ),
        ("tiers: {gold: {weight: 0}}\n", "line 10: tiers.gold.weight: is 0; at least 1 is needed"),
        (
            "tiers: {gold: {weight: 10001}}\n",
            "line 10: tiers.gold.weight: is 10001; at most 10000 is possible",
        ),
    ] {
        assert_problem(&with_rest(rest), wanted);
    }
    let without_currency = with_rest("prices: {models: {}}\n").replace("currency: CNY\n", "");
    assert!(problems(&without_currency).iter().any(|text| text.contains("the plan has no currency")));
}
