//! Playing a script on a book.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use holdfast_ledger::answer::Answer;
use holdfast_ledger::command::{
    AdvanceWebhook, Command, Correct, EntryHeader, EpochBounds, Freeze, PublishPlan, Release, Renew,
    ReportUnknown, Request, Reserve, ResolveUnknown, RollBack, SetTenant, SetWebhook, Settle, Start,
    Unfreeze,
};
use holdfast_ledger::plan::{Calendar, Period, Plan, TenantRecord};
use holdfast_ledger::record::{FreezeScope, Lane, LineageKey};
use holdfast_ledger::webhook::{Webhook, WebhookSecret, WebhookUrl};
use holdfast_ledger::{Adjust, Adjustment, AdjustmentId, Book, Effect, ReservationId, UnknownUsage};

use super::script::{Line, Words, read};
use super::{show, time};

/// A change of a reservation's state.
pub type Transition = (String, String);

/// Where scripts begin unless they say otherwise.
const START: &str = "2026-07-01T12:00:00Z";

pub struct Run {
    name: String,
    now_ms: u64,
    index: u64,
    book: Book,
    /// The replica that lives by restored snapshots.
    twin: Book,
    ids: BTreeMap<String, ReservationId>,
    adjustment_ids: BTreeMap<String, AdjustmentId>,
    bounds: Vec<EpochBounds>,
    states: BTreeMap<ReservationId, String>,
    pub transitions: BTreeSet<Transition>,
}

impl Run {
    pub fn new(name: &str) -> Run {
        Run {
            name: name.to_owned(),
            now_ms: time::parse(START, 0),
            index: 0,
            book: Book::new(),
            twin: Book::new(),
            ids: BTreeMap::new(),
            adjustment_ids: BTreeMap::new(),
            bounds: Vec::new(),
            states: BTreeMap::new(),
            transitions: BTreeSet::new(),
        }
    }

    /// Plays the script; gives it back with the answers of this book.
    pub fn play(&mut self, script: &str) -> String {
        let mut out = String::new();
        for line in read(script) {
            match line {
                Line::Text(text) => writeln!(out, "{text}").unwrap(),
                Line::Command(text, document) => {
                    writeln!(out, "{text}").unwrap();
                    let has_document = text.ends_with(':');
                    for line in &document {
                        writeln!(out, "{line}").unwrap();
                    }
                    if has_document {
                        writeln!(out, "end").unwrap();
                    }
                    for answer in self.play_line(&text, &document) {
                        writeln!(out, "> {answer}").unwrap();
                    }
                }
            }
        }
        out
    }

    fn play_line(&mut self, text: &str, document: &[String]) -> Vec<String> {
        let words = Words::of(text);
        match words.verb.as_str() {
            "at" => {
                self.now_ms = time::parse(&words.plain[0], self.now_ms);
                Vec::new()
            }
            "bounds" => {
                self.bounds.push(bounds(&words, self.now_ms));
                Vec::new()
            }
            "losses" => {
                let plan = Plan::parse(&document.join("\n")).unwrap();
                let losses = self.book.losses(&plan);
                if losses.is_empty() {
                    vec!["none".to_owned()]
                } else {
                    losses.iter().map(show::loss).collect()
                }
            }
            "quota" => {
                let tenant = words.plain[0].parse().unwrap();
                let user = words.plain.get(1).map(|user| user.parse().unwrap());
                let shadow = words.option("lane") == Some("shadow");
                let lines = match (words.plain[0].as_str(), shadow) {
                    ("global", false) => self.book.quota_global(Lane::Enforced, self.now_ms),
                    ("global", true) => self.book.quota_global(Lane::Shadow, self.now_ms),
                    (_, false) => self.book.quota(&tenant, user.as_ref(), self.now_ms),
                    (_, true) => self.book.quota_in_shadow(&tenant, user.as_ref(), self.now_ms),
                };
                lines.iter().map(show::quota).collect()
            }
            "drains" => {
                let drains: Vec<String> = self.book.drains(self.now_ms).iter().map(show::drain).collect();
                if drains.is_empty() { vec!["none".to_owned()] } else { drains }
            }
            "shadow" => {
                let counts: Vec<String> = self.book.shadow_counts().map(show::shadow_counts).collect();
                if counts.is_empty() { vec!["none".to_owned()] } else { counts }
            }
            "events" => {
                let from = words.option("from").map_or(0, |number| number.parse().unwrap());
                let (first, last) = (self.book.first_event(), self.book.last_event());
                let mut lines = vec![format!("first kept {first}, last {last}")];
                let kept = self.book.events_from(from);
                lines.extend(kept.map(|event| format!("{}: {}", event.sequence, show::event(&event.kind))));
                lines
            }
            "webhooks" => {
                let found: Vec<String> = self.book.webhooks().map(show::webhook).collect();
                if found.is_empty() { vec!["none".to_owned()] } else { found }
            }
            "statements" => {
                let tenant = words.plain[0].parse().unwrap();
                let user = words.plain.get(1).map(|user| user.parse().unwrap());
                let found = self.book.statements(&tenant, user.as_ref(), self.now_ms);
                found.iter().map(show::statement).collect()
            }
            "get" => {
                let id = self.ids[&words.plain[0]];
                let found = self.book.reservation(id, self.now_ms);
                if let Some(receipt) = &found {
                    self.note_state(id, receipt.state.as_str());
                }
                vec![found.as_ref().map_or("none".to_owned(), show::receipt)]
            }
            "unknowns" => {
                let found = self.book.unknowns(None, None, self.now_ms, 100);
                let line = |usage: &UnknownUsage| {
                    format!("since {}: {}", time::show(usage.since_ms), show::receipt(&usage.receipt))
                };
                match found.is_empty() {
                    true => vec!["none".to_owned()],
                    false => found.iter().map(line).collect(),
                }
            }
            "counts" => {
                let counts = self.book.counts();
                vec![format!(
                    "reserved {}, started {}, unknown {}, remembered {}, tombstones {}, accounts {}, lineages {}, indebted {}, frozen {}",
                    counts.reserved,
                    counts.started,
                    counts.usage_unknown,
                    counts.remembered,
                    counts.tombstones,
                    counts.accounts,
                    counts.lineages,
                    counts.indebted,
                    counts.frozen
                )]
            }
            "preview" => {
                let command = Words::of(&text.replacen("preview", "reserve", 1));
                let Command::Reserve(reserve) = self.command(&command, document) else { unreachable!() };
                let refusal = self.book.preview(&reserve, self.now_ms);
                vec![refusal.as_ref().map_or("would be admitted".to_owned(), show::refusal)]
            }
            "repeat" => self.repeat(&words, text),
            _ => {
                let command = self.command(&words, document);
                let before = show::accounts(&mut self.book);
                let answer = self.apply(&command);
                let mut lines = vec![show::answer(&answer)];
                lines.extend(self.changes(&before));
                lines
            }
        }
    }

    /// `repeat 50 reserve r{i} …`: the answers are counted.
    fn repeat(&mut self, words: &Words, text: &str) -> Vec<String> {
        let times: u64 = words.plain[0].parse().unwrap();
        let rest = text.splitn(3, ' ').nth(2).unwrap();
        let before = show::accounts(&mut self.book);
        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        for i in 1..=times {
            let command = self.command(&Words::of(&rest.replace("{i}", &i.to_string())), &[]);
            *counted.entry(show::answer(&self.apply(&command))).or_default() += 1;
        }
        let mut lines: Vec<String> =
            counted.iter().map(|(answer, times)| format!("{times} × {answer}")).collect();
        lines.extend(self.changes(&before));
        lines
    }

    fn apply(&mut self, command: &Command) -> Answer {
        self.index += 1;
        let header = EntryHeader {
            index: self.index,
            term: 1,
            stamp_ms: self.now_ms,
            epoch_bounds: std::mem::take(&mut self.bounds),
        };
        // The other replica previews first: a preview must say what the command then does, and change nothing.
        let previewed = match command {
            Command::Reserve(reserve) if header.epoch_bounds.is_empty() && !self.timers_due() => {
                Some(self.twin.preview(reserve, self.now_ms))
            }
            _ => None,
        };
        let answers = self.book.apply_entry(&header, std::slice::from_ref(command));
        let twins = self.twin.apply_entry(&header, std::slice::from_ref(command));
        let place = format!("{} revision {}", self.name, self.book.revision());
        assert_eq!(answers, twins, "{place}: the replicas answer differently");
        assert_eq!(self.book.digest(), self.twin.digest(), "{place}: the replicas' digests differ");
        let audit = self.book.audit();
        assert!(audit.ok, "{place}: {:#?}", audit.violations);
        let snapshot = self.book.snapshot();
        self.twin = Book::restore(snapshot.records()).unwrap_or_else(|error| panic!("{place}: {error}"));
        let answer = answers.into_iter().next().unwrap();
        if let Some(previewed) = previewed {
            let refused = match &answer {
                Answer::Refused(refusal) => Some(refusal.clone()),
                _ => None,
            };
            assert_eq!(previewed, refused, "{place}: the preview said otherwise");
        }
        if let Answer::Reservation(receipt) = &answer {
            self.note_state(receipt.id, receipt.state.as_str());
        }
        answer
    }

    fn timers_due(&self) -> bool {
        self.book.next_timer_ms().is_some_and(|due| due <= self.now_ms)
    }

    fn note_state(&mut self, id: ReservationId, state: &str) {
        let before = self.states.insert(id, state.to_owned()).unwrap_or("-".to_owned());
        if before != state {
            self.transitions.insert((before, state.to_owned()));
        }
    }

    /// What a command changed besides its answer.
    fn changes(&mut self, before: &BTreeMap<(String, u32), String>) -> Vec<String> {
        let after = show::accounts(&mut self.book);
        let changed = after.iter().filter(|(key, line)| before.get(key) != Some(line));
        let mut lines: Vec<String> =
            changed.map(|((lineage, number), line)| format!("  {lineage} #{number} {line}")).collect();
        let gone = before.keys().filter(|key| !after.contains_key(key));
        lines.extend(gone.map(|(lineage, number)| format!("  {lineage} #{number} gone")));
        self.twin.drain_effects();
        for effect in self.book.drain_effects() {
            match effect {
                Effect::Event(event) => lines.push(format!("  event: {}", show::event(&event.kind))),
                Effect::Ended(receipt) => self.note_state(receipt.id, receipt.state.as_str()),
                Effect::Statement(_) => {}
            }
        }
        lines
    }

    fn id(&mut self, words: &Words) -> ReservationId {
        let name = &words.plain[0];
        let time_ms = words.option("id_time").map_or(self.now_ms, |text| time::parse(text, self.now_ms));
        let random = self.ids.len() as u128 + 1;
        *self.ids.entry(name.clone()).or_insert_with(|| ReservationId::from_parts(time_ms, random))
    }

    fn adjustment_id(&mut self, name: &str, words: &Words) -> AdjustmentId {
        let time_ms = words.option("id_time").map_or(self.now_ms, |text| time::parse(text, self.now_ms));
        let random = self.adjustment_ids.len() as u128 + 1;
        let known = self.adjustment_ids.entry(name.to_owned());
        *known.or_insert_with(|| AdjustmentId::from_parts(time_ms, random))
    }

    /// `adjust NAME LIMIT grant=50 tenant=acme …`; without a tenant the limit is a global one.
    fn adjust(&mut self, words: &Words) -> Adjust {
        let amount = |key: &str| words.option(key).map(|text| text.replace('_', "").parse().unwrap());
        let moment = |key: &str| words.option(key).map(|text| time::parse(text, self.now_ms));
        let shadow = words.option("lane") == Some("shadow");
        let lineage = LineageKey {
            limit: words.plain[1].parse().unwrap(),
            tenant: words.option("tenant").map(|name| name.parse().unwrap()),
            user: words.option("user").map(|name| name.parse().unwrap()),
            route: words.option("route").map(|name| name.parse().unwrap()),
            model: words.option("model").map(|name| name.parse().unwrap()),
            region: words.option("region").map(|name| name.parse().unwrap()),
            lane: if shadow { Lane::Shadow } else { Lane::Enforced },
        };
        let boost = |amount| Adjustment::Boost { amount, until_ms: moment("until").unwrap() };
        let what = None
            .or(amount("grant").map(Adjustment::Grant))
            .or(amount("take").map(Adjustment::Take))
            .or(amount("charge").map(Adjustment::Charge))
            .or(amount("correct").map(Adjustment::Correct))
            .or(amount("set_used").map(Adjustment::SetUsed))
            .or(amount("boost").map(boost));
        let epoch_start_ms = moment("epoch");
        let what = what.unwrap_or_else(|| {
            let boost = self.adjustment_id(words.option("end_boost").unwrap(), words);
            Adjustment::EndBoost { boost }
        });
        Adjust {
            id: self.adjustment_id(&words.plain[0], words),
            lineage: Arc::new(lineage),
            epoch_start_ms,
            what,
            actor: words.option("by").unwrap_or("ops").parse().unwrap(),
            reason: words.option("reason").unwrap_or("asked").to_owned(),
        }
    }

    fn command(&mut self, words: &Words, document: &[String]) -> Command {
        let actor = || words.option("by").unwrap_or("ops").parse().unwrap();
        let expected_generation = words.option("expect").map(|generation| generation.parse().unwrap());
        let operation = || words.option("op").unwrap_or("op").parse().unwrap();
        let text = document.join("\n");
        match words.verb.as_str() {
            "plan" => {
                let plan = Plan::parse(&text).unwrap_or_else(|errors| panic!("{}: {errors:#?}", self.name));
                let document = text.as_str().into();
                let plan = Arc::new(plan);
                let force = words.option("force").is_some();
                Command::PublishPlan(PublishPlan {
                    expected_generation,
                    force,
                    document,
                    plan,
                    actor: actor(),
                })
            }
            "rollback" => {
                let to = words.option("to").unwrap().parse().unwrap();
                Command::RollBack(RollBack { to, expected_generation, actor: actor() })
            }
            "tenant" => {
                let unchecked = words.option("unchecked").is_some();
                let record = (!document.is_empty()).then(|| match unchecked {
                    true => Arc::new(unchecked_record(&text)),
                    false => {
                        let plan = &self.book.plan().unwrap().plan;
                        Arc::new(TenantRecord::parse(&text, plan).unwrap())
                    }
                });
                let tenant = words.plain[0].parse().unwrap();
                Command::SetTenant(SetTenant { tenant, record, expected_generation, actor: actor() })
            }
            "reserve" => {
                let id = self.id(words);
                let request = Request {
                    tenant: words.option("tenant").unwrap_or("acme").parse().unwrap(),
                    user: words.option("user").map(|user| user.parse().unwrap()),
                    route: words.option("route").unwrap_or("chat").parse().unwrap(),
                    model: words.option("model").map(|model| model.parse().unwrap()),
                    region: words.option("region").map(|region| region.parse().unwrap()),
                    amounts: words.amounts(),
                    minimum: words.amounts_with("min_"),
                    hold_ttl_ms: words.option("ttl").map(time::duration),
                };
                let request_digest = request.digest();
                let key = words.option("key").map(|key| key.parse().unwrap());
                Command::Reserve(Reserve { id, attempt: 1, request, request_digest, key })
            }
            "start" => Command::Start(Start { id: self.id(words), operation: operation() }),
            "settle" | "estimate" => {
                let id = self.id(words);
                let (actual, estimated) = (words.amounts(), words.verb == "estimate");
                Command::Settle(Settle { id, operation: operation(), actual, estimated })
            }
            "correct" => {
                let id = self.id(words);
                Command::Correct(Correct { id, operation: operation(), actual: words.amounts() })
            }
            "release" => Command::Release(Release { id: self.id(words) }),
            "renew" => {
                let extend_ms = time::duration(words.option("extend").unwrap());
                Command::Renew(Renew { id: self.id(words), extend_ms })
            }
            "unknown" => Command::ReportUnknown(ReportUnknown { id: self.id(words), operation: operation() }),
            "resolve" => Command::ResolveUnknown(ResolveUnknown {
                id: self.id(words),
                actual: words.amounts(),
                actor: actor(),
                reason: words.option("reason").unwrap_or("asked").to_owned(),
            }),
            "freeze" => Command::Freeze(Freeze {
                scope: scope(words),
                actor: actor(),
                reason: words.option("reason").unwrap_or("abuse").to_owned(),
            }),
            "unfreeze" => Command::Unfreeze(Unfreeze {
                scope: scope(words),
                actor: actor(),
                reason: words.option("reason").unwrap_or("checked").to_owned(),
            }),
            "adjust" => Command::Adjust(Box::new(self.adjust(words))),
            "webhook" => {
                let webhook = words.option("url").map(|url| Webhook {
                    url: WebhookUrl::new(url).unwrap(),
                    secret: WebhookSecret::new(words.option("secret").unwrap().as_bytes()).unwrap(),
                });
                let tenant = words.plain[0].parse().unwrap();
                Command::SetWebhook(SetWebhook { tenant, webhook, actor: actor() })
            }
            "delivered" => Command::AdvanceWebhook(AdvanceWebhook {
                tenant: words.plain[0].parse().unwrap(),
                cursor: words.plain[1].parse().unwrap(),
            }),
            "tick" => Command::Tick,
            "rules" => Command::RaiseRules { rules_version: words.plain[0].parse().unwrap() },
            other => panic!("{}: {other:?} is no command", self.name),
        }
    }
}

fn scope(words: &Words) -> FreezeScope {
    FreezeScope {
        tenant: words.plain[0].parse().unwrap(),
        user: words.option("user").map(|user| user.parse().unwrap()),
        route: words.option("route").unwrap_or("chat").parse().unwrap(),
        model: words.option("model").map(|model| model.parse().unwrap()),
        region: words.option("region").map(|region| region.parse().unwrap()),
    }
}

/// `tier NAME` or `limit ID AMOUNT`, without a look at the plan.
fn unchecked_record(text: &str) -> TenantRecord {
    let mut record = TenantRecord::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "tier" => record.tier = Some(words[1].parse().unwrap()),
            _ => {
                let amount = words[2].parse().unwrap();
                let found = holdfast_ledger::plan::Override::Amount { amount, burst: None };
                record.overrides.insert(words[1].parse().unwrap(), found);
            }
        }
    }
    record
}

fn bounds(words: &Words, now_ms: u64) -> EpochBounds {
    let period = match words.plain[0].as_str() {
        "hour" => Period::Hour,
        "day" => Period::Day,
        "month" => Period::Month(1),
        "week" => Period::Week(1),
        "year" => Period::Year(1),
        days if days.ends_with('d') => Period::Days(days.trim_end_matches('d').parse().unwrap()),
        other => panic!("{other:?} is no period"),
    };
    let calendar = Arc::new(Calendar { period, zone: words.plain[1].clone() });
    let bounds_ms = words.plain[2..].iter().map(|text| time::parse(text, now_ms)).collect();
    EpochBounds { calendar, bounds_ms }
}
