//! The members of a world: their books, what the leader has proposed, what is committed.
//!
//! Raft itself is not here, only what it may do: entries are committed in one order, a change of leader
//! keeps a prefix of what was under way and loses the rest, members apply late, a leader that was cut off
//! believes in itself for a while.

use holdfast_ledger::answer::Answer;
use holdfast_ledger::command::{EntryHeader, EpochBounds};
use holdfast_ledger::event::Effect;
use holdfast_ledger::{Book, Command, ReservationId};

use crate::interleave::facts::DAY_MS;
use crate::interleave::found::{Found, Kind};
use crate::interleave::tally::Tally;

/// Bounds are brought when less than this is known ahead, ms.
const BOUNDS_AHEAD_MS: u64 = 2 * DAY_MS;

/// Who waits for the answer to a command: an actor's attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub actor: usize,
    pub serial: u32,
}

/// A command that a leader took, and who asked.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub command: Command,
    pub origin: Option<Origin>,
}

/// An entry of the log.
#[derive(Clone, Debug)]
pub struct Entry {
    header: EntryHeader,
    commands: Vec<Command>,
    /// The member that took the commands, which answers them.
    member: usize,
    origins: Vec<Option<Origin>>,
}

/// A committed entry, and what the first member that applied it made of it.
struct Committed {
    entry: Entry,
    first: Option<(u128, Vec<Answer>)>,
    revision_before: u64,
}

/// One member.
pub struct Member {
    pub book: Book,
    /// Entries applied.
    applied: usize,
    /// Its clock less the world's, ms.
    pub offset_ms: i64,
    /// Whether it believes that it leads.
    pub leads: bool,
    /// Cut off from the other members.
    pub cut: bool,
    pub queue: Vec<Proposal>,
    uncommitted: Vec<Entry>,
}

/// All of them.
pub struct Cluster {
    pub members: Vec<Member>,
    /// Who can commit, if anybody can.
    pub leader: Option<usize>,
    term: u64,
    log: Vec<Committed>,
    pub tally: Tally,
    /// What archived accounts had spent, as the first book told it, by unit.
    pub archived_spent: [u128; 4],
    pub found: Vec<Found>,
}

/// An answer that a member owes.
pub struct Owed {
    pub origin: Origin,
    pub answer: Answer,
    pub revision: u64,
}

impl Member {
    fn new() -> Self {
        Member {
            book: Book::new(),
            applied: 0,
            offset_ms: 0,
            leads: false,
            cut: false,
            queue: Vec::new(),
            uncommitted: Vec::new(),
        }
    }

    /// Its clock.
    pub fn clock_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add_signed(self.offset_ms)
    }

    /// Whether a reserve of this id is on its way through this member.
    pub fn has_under_way(&self, id: ReservationId) -> bool {
        let is_it = |command: &Command| matches!(command, Command::Reserve(reserve) if reserve.id == id);
        self.queue.iter().any(|proposal| is_it(&proposal.command))
            || self.uncommitted.iter().any(|entry| entry.commands.iter().any(is_it))
    }

    /// Whether nothing it took is waiting.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.uncommitted.is_empty()
    }
}

impl Cluster {
    /// Members with empty books; the first one leads.
    pub fn new(members: usize, tally: Tally) -> Self {
        let mut members: Vec<_> = (0..members).map(|_| Member::new()).collect();
        members[0].leads = true;
        Cluster {
            members,
            leader: Some(0),
            term: 1,
            log: Vec::new(),
            tally,
            archived_spent: [0; 4],
            found: Vec::new(),
        }
    }

    /// Members that have something to apply.
    pub fn lagging(&self) -> impl Iterator<Item = usize> + '_ {
        let committed = self.log.len();
        self.members
            .iter()
            .enumerate()
            .filter(move |(_, member)| member.applied < committed && !member.cut)
            .map(|(place, _)| place)
    }

    /// Whether the leader may commit: it has something, and a quorum.
    pub fn can_commit(&self) -> bool {
        self.leader.is_some_and(|leader| {
            let leader = &self.members[leader];
            !leader.cut && !leader.uncommitted.is_empty()
        })
    }

    /// Puts what a member has queued into an entry, at most `most` commands of it.
    pub fn propose(&mut self, place: usize, most: usize, now_ms: u64) {
        let index = (self.log.len() + self.members[place].uncommitted.len() + 1) as u64;
        let member = &mut self.members[place];
        let count = member.queue.len().min(most.max(1));
        let (commands, origins): (Vec<_>, Vec<_>) =
            member.queue.drain(..count).map(|proposal| (proposal.command, proposal.origin)).unzip();
        let stamp_ms = member.clock_ms(now_ms);
        let epoch_bounds = bounds(&member.book, &commands, stamp_ms);
        let header = EntryHeader { index, term: self.term, stamp_ms, epoch_bounds };
        member.uncommitted.push(Entry { header, commands, member: place, origins });
    }

    /// Commits the leader's first entry.
    pub fn commit(&mut self) {
        let Some(leader) = self.leader else { return };
        let entry = self.members[leader].uncommitted.remove(0);
        let revision_before =
            self.log.last().map_or(0, |last| last.revision_before + last.entry.commands.len() as u64);
        self.log.push(Committed { entry, first: None, revision_before });
    }

    /// A member applies its next entry. Gives the answers that it owes.
    pub fn apply(&mut self, place: usize) -> Vec<Owed> {
        let member = &mut self.members[place];
        let committed = &mut self.log[member.applied];
        member.applied += 1;
        let entry = &committed.entry;
        let owes = entry.member == place;
        // As a follower does: nobody waits for its answers.
        let answers = if committed.first.is_some() && !owes {
            member.book.apply_entry_quietly(&entry.header, &entry.commands);
            None
        } else {
            Some(member.book.apply_entry(&entry.header, &entry.commands))
        };
        let digest = member.book.digest();
        let effects = member.book.drain_effects();
        let answers = match (answers, &committed.first) {
            (Some(answers), None) => {
                self.tally.begin_entry(entry.header.stamp_ms);
                for (at, (command, answer)) in entry.commands.iter().zip(&answers).enumerate() {
                    self.tally.observe(command, answer, committed.revision_before + at as u64 + 1);
                }
                add_archived(&mut self.archived_spent, &effects);
                committed.first = Some((digest, answers.clone()));
                answers
            }
            (answers, Some((known, first))) => {
                if *known != digest || answers.as_ref().is_some_and(|answers| answers != first) {
                    let detail = format!(
                        "entry {}: member {place} has digest {digest:032x} and answers {answers:?}, the first had {known:032x} and {first:?}",
                        entry.header.index
                    );
                    self.found.push(Found::new(Kind::Replicas, detail));
                }
                answers.unwrap_or_default()
            }
            (None, None) => return Vec::new(),
        };
        if !owes {
            return Vec::new();
        }
        let revision = |at: usize| committed.revision_before + at as u64 + 1;
        let owed = entry.origins.iter().zip(answers).enumerate();
        owed.filter_map(|(at, (origin, answer))| {
            Some(Owed { origin: (*origin)?, answer, revision: revision(at) })
        })
        .collect()
    }

    /// A member writes a snapshot and starts again from it.
    pub fn restore(&mut self, place: usize) {
        let book = &mut self.members[place].book;
        let snapshot = book.snapshot();
        match Book::restore(snapshot.records()) {
            Ok(restored) if restored.digest() == book.digest() => self.members[place].book = restored,
            Ok(restored) => {
                let (was, is) = (book.digest(), restored.digest());
                let detail = format!("member {place}: digest {was:032x} became {is:032x}");
                self.found.push(Found::new(Kind::Snapshot, detail));
            }
            Err(error) => {
                let detail = format!("member {place}: its snapshot is refused: {error}");
                self.found.push(Found::new(Kind::Snapshot, detail));
            }
        }
    }

    /// A member is sent the snapshot of another one that is ahead of it.
    pub fn install(&mut self, from: usize, to: usize) {
        if self.members[from].applied <= self.members[to].applied {
            return;
        }
        match Book::restore(self.members[from].book.snapshot().records()) {
            Ok(book) => {
                self.members[to].book = book;
                self.members[to].applied = self.members[from].applied;
            }
            Err(error) => {
                let detail = format!("the snapshot of member {from} is refused: {error}");
                self.found.push(Found::new(Kind::Snapshot, detail));
            }
        }
    }

    /// Another member leads. Of what the old one had under way the first `kept` entries survive. Gives the
    /// attempts whose commands may be lost, and those that were certainly never proposed.
    pub fn change_leader(&mut self, to: usize, kept: usize) -> (Vec<Origin>, Vec<Origin>) {
        self.term += 1;
        let (mut lost, mut never) = (Vec::new(), Vec::new());
        let mut survivors = Vec::new();
        if let Some(old) = self.leader.take() {
            let old = &mut self.members[old];
            survivors = old.uncommitted.iter().take(kept).cloned().collect();
            if !old.cut {
                (lost, never) = step_down(old, kept);
            }
        }
        let new = &mut self.members[to];
        new.leads = true;
        new.uncommitted = survivors;
        new.queue.push(Proposal { command: Command::Tick, origin: None });
        self.leader = Some(to);
        (lost, never)
    }

    /// How many entries the leader has under way.
    pub fn under_way(&self) -> usize {
        self.leader.map_or(0, |leader| self.members[leader].uncommitted.len())
    }

    /// A member that was cut off is back. If it still believed that it leads, it learns that it does not.
    pub fn reconnect(&mut self, place: usize) -> (Vec<Origin>, Vec<Origin>) {
        let is_leader = self.leader == Some(place);
        let member = &mut self.members[place];
        member.cut = false;
        if member.leads && !is_leader { step_down(member, 0) } else { Default::default() }
    }

    /// Whether every member has applied everything.
    pub fn is_level(&self) -> bool {
        self.members.iter().all(|member| member.applied == self.log.len())
    }

    /// A member that has applied everything that the tally has heard.
    pub fn foremost(&self) -> Option<usize> {
        let heard = self.log.iter().take_while(|committed| committed.first.is_some()).count();
        self.members.iter().position(|member| member.applied == heard)
    }
}

/// A member stops leading: what it had proposed past `kept` may be lost, what it had queued was never proposed.
fn step_down(member: &mut Member, kept: usize) -> (Vec<Origin>, Vec<Origin>) {
    member.leads = false;
    let entries = member.uncommitted.drain(..).skip(kept);
    let lost = entries.flat_map(|entry| entry.origins).flatten().collect();
    let never = member.queue.drain(..).filter_map(|proposal| proposal.origin).collect();
    (lost, never)
}

fn add_archived(spent: &mut [u128; 4], effects: &[Effect]) {
    for effect in effects {
        if let Effect::Statement(statement) = effect {
            let unit = crate::interleave::plans::unit_of_limit(statement.lineage.limit.as_str());
            spent[unit as usize] += statement.columns.spent;
        }
    }
}

/// The days' bounds that an entry has to bring.
fn bounds(book: &Book, commands: &[Command], stamp_ms: u64) -> Vec<EpochBounds> {
    let published = commands.iter().filter_map(|command| match command {
        Command::PublishPlan(publish) => Some(publish.plan.calendars()),
        _ => None,
    });
    let mut wanted: Vec<_> = published
        .flatten()
        .filter(|calendar| calendar.period.wants_bounds())
        .map(|calendar| (calendar, None))
        .collect();
    wanted.extend(book.calendars());
    wanted
        .into_iter()
        .filter(|(_, known)| known.is_none_or(|known| known < stamp_ms + BOUNDS_AHEAD_MS))
        .map(|(calendar, known)| {
            let first = known.unwrap_or((stamp_ms / DAY_MS - 1) * DAY_MS);
            let days = (stamp_ms + 2 * BOUNDS_AHEAD_MS - first) / DAY_MS;
            EpochBounds { calendar, bounds_ms: (0..=days).map(|day| first + day * DAY_MS).collect() }
        })
        .collect()
}
