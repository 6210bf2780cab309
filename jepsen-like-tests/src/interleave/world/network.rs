//! Messages between gateways and members, and what a member does with a request.

use holdfast_client::core::{Advice, Reply, advice};
use holdfast_client::limits::{ATTEMPT_TIMEOUT, CALL_DEADLINE};
use holdfast_ledger::answer::Answer;
use holdfast_ledger::command::Command;
use holdfast_proto::answers::{Decided, Done};
use holdfast_proto::{ErrorReason, Failure, LeaderHint};

use super::World;
use super::actors::{Actor, Driver, Due};
use super::cluster::{Origin, Owed, Proposal};

/// How long an attempt may stay unanswered, ms.
const ATTEMPT_MS: u64 = ATTEMPT_TIMEOUT.as_millis() as u64;

/// How long after it was sent a member may still take a command, ms.
const DEADLINE_MS: u64 = CALL_DEADLINE.as_millis() as u64;

/// Something on its way.
pub struct Message {
    origin: Origin,
    member: usize,
    body: Body,
}

#[derive(Clone)]
enum Body {
    Request { command: Command, deadline_ms: u64 },
    Answer { reply: Reply, decided: Option<Decided> },
}

impl World<'_> {
    /// A new actor, with the first thing that it asks for.
    pub fn enter(&mut self, gateway: usize, driver: Driver, due: Due) {
        self.actors.push(Actor::new(gateway, driver));
        self.follow(self.actors.len() - 1, due);
    }

    /// Does what an actor asks for.
    pub fn follow(&mut self, actor: usize, due: Due) {
        match due {
            Due::Send => self.send(actor),
            Due::Pause(ms) => self.actors[actor].due_ms = Some(self.now_ms + ms.max(1)),
            Due::Idle => {}
            Due::Over => {
                self.actors[actor].over_ms = Some(self.now_ms);
                self.on_over(actor);
            }
        }
    }

    fn send(&mut self, place: usize) {
        let gateway = self.actors[place].gateway;
        let member = member_of(self.routes[gateway].pick());
        let Some(command) = self.actors[place].outgoing() else { return };
        let actor = &mut self.actors[place];
        actor.serial += 1;
        let origin = Origin { actor: place, serial: actor.serial };
        actor.waiting = Some((actor.serial, member));
        actor.due_ms = Some(self.now_ms + ATTEMPT_MS);
        self.tell(|| format!("gateway {gateway} sends {} to member {member}", words(&command)));
        if self.late_left > 0 {
            self.sent.push(command.clone());
        }
        if self.cut[gateway][member] {
            self.ended.counts.lost += 1;
            return;
        }
        // A member is told how long the call may take, which is longer than its gateway is patient with it:
        // an attempt that was given up may still be done.
        let body = Body::Request { command, deadline_ms: self.now_ms + DEADLINE_MS };
        self.put(Message { origin, member, body });
    }

    /// A message goes out: it may be lost, or come twice.
    fn put(&mut self, message: Message) {
        if !self.healed && self.choices.chance(self.trouble.loss_percent) {
            self.ended.counts.lost += 1;
            self.tell(|| format!("lost: {}", message.words()));
            return;
        }
        if !self.healed && self.choices.chance(self.trouble.repeat_percent) {
            self.ended.counts.repeated += 1;
            // A second copy of a reserve is as if somebody else used its id.
            if let Body::Request { command: Command::Reserve(reserve), .. } = &message.body {
                self.shared.push(reserve.id);
            }
            self.messages.push(Message { body: message.body.clone(), ..message });
        }
        self.messages.push(message);
    }

    /// A message is held up, perhaps for longer than its sender waits for an answer.
    pub fn hold_up(&mut self) {
        let which = self.choices.index(self.messages.len());
        let message = self.messages.swap_remove(which);
        let until_ms = self.now_ms + ATTEMPT_MS * u64::from(1 + self.choices.below(5));
        self.tell(|| format!("held up: {}", message.words()));
        self.held_up.push((until_ms, message));
    }

    /// What was held up until now goes on.
    pub fn go_on_with_held_up(&mut self) {
        let now_ms = self.now_ms;
        self.messages.extend(
            self.held_up.extract_if(.., |(until_ms, _)| *until_ms <= now_ms).map(|(_, message)| message),
        );
    }

    /// Delivers one of the messages.
    pub fn deliver(&mut self, which: usize) {
        let Message { origin, member, body } = self.messages.swap_remove(which);
        match body {
            Body::Request { command, deadline_ms } => self.on_request(origin, member, command, deadline_ms),
            Body::Answer { reply, decided } => self.on_answer(origin, member, reply, decided),
        }
    }

    fn on_request(&mut self, origin: Origin, place: usize, command: Command, deadline_ms: u64) {
        let member = &self.cluster.members[place];
        if !member.leads {
            let leader = self.cluster.leader.filter(|_| !member.cut);
            let hint =
                leader.map(|leader| LeaderHint { node_id: leader as u64, address: format!("m{leader}:1") });
            return self.answer(origin, place, Reply::Failed(Failure::not_leader(hint)), None);
        }
        if deadline_ms <= self.now_ms {
            let late = Failure::new(ErrorReason::DroppedLate, "the deadline passed");
            return self.answer(origin, place, Reply::Failed(late), None);
        }
        if let Some(refusal) = self.refuse_fast(place, &command) {
            self.ended.counts.refused_fast += 1;
            self.tell(|| format!("member {place} refuses {} without an entry", words(&command)));
            return self.answer(origin, place, Reply::Failed(refusal), None);
        }
        if !self.healed && self.choices.chance(1) {
            let full = Failure::overloaded("queue");
            return self.answer(origin, place, Reply::Failed(full), None);
        }
        self.cluster.members[place].queue.push(Proposal { command, origin: Some(origin) });
    }

    /// A first attempt that the leader's applied state already refuses, and that is not on its way, needs no entry.
    fn refuse_fast(&self, place: usize, command: &Command) -> Option<Failure> {
        let Command::Reserve(reserve) = command else { return None };
        let member = &self.cluster.members[place];
        if reserve.attempt != 1 || member.has_under_way(reserve.id) {
            return None;
        }
        let refusal = member.book.preview(reserve, member.clock_ms(self.now_ms))?;
        Some(Failure::from(&refusal).at_revision(member.book.revision()))
    }

    /// Sends the answers that a member owes.
    pub fn settle_owed(&mut self, member: usize, owed: Vec<Owed>) {
        for Owed { origin, answer, revision } in owed {
            let (reply, decided) = match &answer {
                Answer::Refused(refusal) => {
                    (Reply::Failed(Failure::from(refusal).at_revision(revision)), None)
                }
                _ => (Reply::Done, decided(&answer, revision)),
            };
            self.answer(origin, member, reply, decided);
        }
    }

    /// Tells attempts of a leader that stepped down what it may: that nobody knows, or that nothing was done.
    pub fn tell_fate(&mut self, member: usize, (lost, never): (Vec<Origin>, Vec<Origin>)) {
        for origin in lost {
            if self.choices.chance(50) {
                let unknown = Failure::new(ErrorReason::OutcomeUnknown, "leadership was lost");
                self.answer(origin, member, Reply::Failed(unknown), None);
            }
        }
        for origin in never {
            self.answer(origin, member, Reply::Failed(Failure::not_leader(None)), None);
        }
    }

    fn answer(&mut self, origin: Origin, member: usize, reply: Reply, decided: Option<Decided>) {
        let gateway = self.actors[origin.actor].gateway;
        if self.cut[gateway][member] || !self.actors[origin.actor].is_alive() {
            return;
        }
        self.put(Message { origin, member, body: Body::Answer { reply, decided } });
    }

    fn on_answer(&mut self, origin: Origin, member: usize, reply: Reply, decided: Option<Decided>) {
        let place = origin.actor;
        let actor = &self.actors[place];
        // A second or late answer meets nobody.
        if !actor.is_alive() || actor.waiting != Some((origin.serial, member)) {
            return;
        }
        self.on_reply(place, member, reply, decided);
    }

    /// The attempt under way has ended, with an answer or without.
    pub fn on_reply(&mut self, place: usize, member: usize, reply: Reply, decided: Option<Decided>) {
        let gateway = self.actors[place].gateway;
        let asked = format!("m{member}:1");
        let routes = &mut self.routes[gateway];
        match advice(&reply) {
            Advice::Keep => routes.keep(&asked),
            Advice::Leader(hint) => routes.follow(&asked, &hint.address),
            Advice::Leave => routes.leave(&asked),
        }
        self.tell(|| format!("gateway {gateway} hears {}", heard(&reply, decided.as_ref())));
        let since = self.actors[place].life().and_then(|life| life.unknown_since_ms());
        let random = self.choices.spread();
        let due = self.actors[place].on_reply(self.now_ms, reply, decided, random);
        let still = self.actors[place].life().and_then(|life| life.unknown_since_ms());
        if let (Some(since_ms), None) = (since, still) {
            self.ended.unknown_ms.push(self.now_ms - since_ms);
        }
        self.follow(place, due);
    }

    /// An actor's time has come: its pause is over, or its attempt stayed unanswered.
    pub fn wake(&mut self, place: usize) {
        match self.actors[place].waiting {
            Some((_, member)) => {
                self.on_reply(place, member, Reply::Lost("no answer in time".to_owned()), None);
            }
            None => {
                let due = self.actors[place].resume(self.now_ms);
                self.follow(place, due);
            }
        }
    }
}

impl Message {
    fn words(&self) -> String {
        match &self.body {
            Body::Request { command, .. } => words(command),
            Body::Answer { reply, decided } => format!("answer {}", heard(reply, decided.as_ref())),
        }
    }
}

fn member_of(address: &str) -> usize {
    address.trim_start_matches('m').split(':').next().and_then(|place| place.parse().ok()).unwrap_or(0)
}

fn decided(answer: &Answer, revision: u64) -> Option<Decided> {
    let done = match answer {
        Answer::Reservation(receipt) => Done::Receipt(Box::new(receipt.as_ref().clone())),
        Answer::Tombstone { id } => Done::Tombstone(*id),
        _ => return None,
    };
    Some(Decided { revision, digest: None, done })
}

/// A command in few words.
pub fn words(command: &Command) -> String {
    match command {
        Command::Reserve(reserve) => {
            let request = &reserve.request;
            let user = request.user.as_ref().map_or("nobody", |user| user.as_str());
            let amounts: Vec<_> =
                request.amounts.iter().map(|(unit, amount)| format!("{amount} {unit}")).collect();
            format!(
                "reserve {} for {}/{user} on {}: {} (attempt {})",
                reserve.id,
                request.tenant,
                request.route,
                amounts.join(", "),
                reserve.attempt
            )
        }
        Command::Start(start) => format!("start {} as {}", start.id, start.operation),
        Command::Settle(settle) => {
            let amounts: Vec<_> =
                settle.actual.iter().map(|(unit, amount)| format!("{amount} {unit}")).collect();
            format!("settle {} as {} with {}", settle.id, settle.operation, amounts.join(", "))
        }
        Command::Release(release) => format!("release {}", release.id),
        Command::Renew(renew) => format!("renew {} for {} ms", renew.id, renew.extend_ms),
        Command::ReportUnknown(report) => format!("report {} unknown", report.id),
        Command::PublishPlan(publish) => {
            format!("publish, expecting generation {:?}:\n{}", publish.expected_generation, publish.document)
        }
        Command::UnreadablePlan(unreadable) => {
            format!("publish what nobody can read: {}", unreadable.problem)
        }
        Command::SetTenant(set) => format!("set tenant {}: {:?}", set.tenant, set.record),
        Command::Unfreeze(unfreeze) => {
            format!("unfreeze {}", unfreeze.scope)
        }
        Command::RollBack(roll_back) => format!("roll back to generation {}", roll_back.to),
        Command::Adjust(adjust) => format!("adjust {}: {:?}", adjust.lineage, adjust.what),
        Command::Correct(correct) => format!("correct {}: {:?}", correct.id, correct.actual),
        Command::ResolveUnknown(resolve) => format!("resolve {}: {:?}", resolve.id, resolve.actual),
        Command::Freeze(freeze) => format!("freeze {}", freeze.scope),
        Command::SetWebhook(set) => format!("set the webhook of {}: {:?}", set.tenant, set.webhook),
        Command::AdvanceWebhook(advance) => {
            format!("the webhook of {} got {}", advance.tenant, advance.cursor)
        }
        Command::Tick => "tick".to_owned(),
        Command::RaiseRules { rules_version } => format!("raise rules to {rules_version}"),
    }
}

fn heard(reply: &Reply, decided: Option<&Decided>) -> String {
    match (reply, decided) {
        (Reply::Done, Some(Decided { revision, done: Done::Receipt(receipt), .. })) => {
            format!("{} is {} at revision {revision}", receipt.id, receipt.state.as_str())
        }
        (Reply::Done, Some(Decided { revision, done: Done::Tombstone(id), .. })) => {
            format!("{id} is a tombstone at revision {revision}")
        }
        (Reply::Done, None) => "done".to_owned(),
        (Reply::Failed(failure) | Reply::NotSent(failure), _) => failure.to_string(),
        (Reply::Lost(why), _) => format!("nothing: {why}"),
    }
}
