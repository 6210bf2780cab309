//! Worlds with a bug built in, each of which must be found.

use holdfast_ledger::mutants::plant;

use super::choices::Choices;
use super::found::{Found, Kind};
use super::parked::guarded;
use super::world::play;

/// A deliberate bug: its name in the ledger or in the client, and what it breaks.
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// What it breaks.
    pub breaks: &'static str,
}

const fn mutant(name: &'static str, breaks: &'static str) -> Mutant {
    Mutant { name, breaks }
}

/// All of them.
pub const MUTANTS: &[Mutant] = &[
    mutant("skip-user-level", "limits of the user level are not looked at"),
    mutant("users-share", "all users of a tenant have one balance"),
    mutant("settle-twice", "a repeated settlement gives back once more what a bucket held"),
    mutant("settle-any-content", "a second settlement with other content is taken for the first"),
    mutant("overrun-is-free", "what was used beyond the hold is not booked"),
    mutant("less-for-at-most", "`<` for `<=`: the last unit is never given"),
    mutant("ladder-one-percent-late", "tiers begin one percent late"),
    mutant("wait-without-debt", "a bucket's wait leaves out that debt is repaid first"),
    mutant("debt-elsewhere-is-ignored", "debt of a unit that the request does not name suspends nobody"),
    mutant("debt-dies-with-its-epoch", "no epoch's debt outlives it"),
    mutant("refill-before-repaying", "a bucket fills while it is in debt"),
    mutant("fractions-are-lost", "a refill drops the remainder of its division"),
    mutant("all-goes-over", "all that is unused goes over into the next epoch"),
    mutant("publish-starts-afresh", "a changed rule starts a new epoch: what was used is forgotten"),
    mutant("refunds-stay-behind", "what a closed account gets back never reaches its successor"),
    mutant("expiry-keeps-the-units", "an expired hold gives nothing back"),
    mutant("unknown-is-unused", "an operation that nobody heard of in time counts as unused"),
    mutant("start-after-the-hold", "a hold can be started after its end"),
    mutant("start-binds-anybody", "a second operation may start what another one runs"),
    mutant("release-what-runs", "a started reservation can be released"),
    mutant("release-once-only", "a repeated release is refused"),
    mutant("renew-shortens", "a renewal may take time away"),
    mutant("no-tombstone", "a release of an unknown id leaves nothing behind"),
    mutant("any-request-under-an-id", "the digest of the request is not compared"),
    mutant("old-ids-are-new", "an id below the floor, which may be forgotten, is taken for a new one"),
    mutant("ids-from-any-future", "an id may lie any time ahead"),
    mutant("no-freeze", "a breach freezes nobody"),
    mutant("slots-are-spent", "slots are used up by what held them"),
    mutant("clock-goes-back", "a leader whose clock is behind takes the book back in time"),
    mutant("restore-without-timers", "holds that came with a snapshot never end"),
    mutant("restore-thaws", "freezes are not in what a snapshot gives back"),
    mutant("minimum-gives-all", "a reserve with a minimum is granted all that it asks"),
    mutant("estimate-is-nothing", "an estimate counts what was not reported as unused"),
    mutant("corrected-twice", "an estimate is corrected by every correction that comes"),
    mutant("adjusted-twice", "a repeated adjustment is booked again"),
    mutant("resolve-what-runs", "an operator ends an operation that is not unknown"),
    mutant("freeze-by-word-only", "an operator's freeze is confirmed and not kept"),
    mutant("grants-outlive-their-epoch", "an operator's grant comes again with every epoch"),
    mutant("roll-back-to-nothing", "a roll-back says that it was done and changes nothing"),
    mutant("ids-are-not-closed", "client: a refusal is believed while an earlier attempt is unanswered"),
    mutant("lost-is-undone", "client: an attempt that was not answered counts as not done"),
    mutant("resumed-as-new", "client: a call that goes on where an unknown one ended forgets its attempts"),
    mutant("ends-are-given-up", "client: a settlement that could not be delivered in time is given up"),
];

/// How a mutant was found.
pub struct Caught {
    /// The first world that failed, and what was found in it first.
    pub first: Option<(u64, Found)>,
    /// Worlds by kind of violation, over the worlds that were played.
    pub by_kind: Vec<(Kind, u64)>,
}

/// Plays worlds with a bug built in until one fails, at most `most`; and then `more`, to see who else notices.
pub fn hunt(name: &'static str, seed: u64, most: u64, more: u64) -> Caught {
    let mut caught = Caught { first: None, by_kind: Vec::new() };
    let mut last = most;
    let mut number = 0;
    while number < last {
        let played = guarded(move || {
            plant(Some(name));
            play(&mut Choices::seeded(seed, number), None).found
        });
        let found = played.unwrap_or_else(|said| vec![Found::new(Kind::Assertion, said)]);
        let mut kinds: Vec<_> = found.iter().map(|found| found.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            match caught.by_kind.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1,
                None => caught.by_kind.push((kind, 1)),
            }
        }
        if caught.first.is_none()
            && let Some(found) = found.into_iter().next()
        {
            caught.first = Some((number, found));
            last = (number + 1 + more).min(most);
        }
        number += 1;
    }
    caught.by_kind.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    caught
}
