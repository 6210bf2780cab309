//! The shortest tape that still fails in the same way.

use std::sync::{Arc, PoisonError};

use super::choices::{Choices, Copied};
use super::found::{Found, Kind};
use super::parked::guarded;
use super::world::play;

/// The choices of a world under a seed, also of one in which the book stops itself.
pub fn tape_of(seed: u64, number: u64) -> Vec<u32> {
    let copied = Copied::default();
    let copy = Arc::clone(&copied);
    let _ = guarded(move || {
        play(&mut Choices::seeded(seed, number).copied_to(&copy), None);
    });
    copied.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Plays a tape, as seeded or shortened. Gives what was found and the choices that were really taken.
pub fn replay(tape: Vec<u32>) -> (Vec<Found>, Vec<u32>) {
    let taken = tape.clone();
    let played = guarded(move || {
        let mut choices = Choices::replay(tape);
        let ended = play(&mut choices, None);
        (ended.found, choices.into_tape())
    });
    played.unwrap_or_else(|said| (vec![Found::new(Kind::Assertion, said)], taken))
}

/// Shortens a failing tape as far as `attempts` go: takes pieces out, then makes choices harmless.
pub fn shrink(tape: Vec<u32>, kind: Kind, mut attempts: u32) -> Vec<u32> {
    let mut best = tape;
    let mut try_it = |best: &mut Vec<u32>, candidate: Vec<u32>| {
        if attempts == 0 || candidate == *best {
            return false;
        }
        attempts -= 1;
        let (found, taken) = replay(candidate);
        let fails = found.iter().any(|found| found.kind == kind);
        let smaller = (taken.len(), taken.iter().map(|choice| u64::from(*choice)).sum::<u64>())
            < (best.len(), best.iter().map(|choice| u64::from(*choice)).sum::<u64>());
        if fails && smaller {
            *best = taken;
            return true;
        }
        false
    };
    loop {
        let before = best.clone();
        let mut piece = best.len() / 2;
        while piece > 0 {
            let mut from = 0;
            while from < best.len() {
                let mut candidate = best.clone();
                candidate.drain(from..(from + piece).min(best.len()));
                if !try_it(&mut best, candidate) {
                    from += piece;
                }
            }
            piece /= 2;
        }
        for at in 0..best.len() {
            if best.get(at).is_some_and(|choice| *choice > 0) {
                let mut candidate = best.clone();
                candidate[at] = 0;
                try_it(&mut best, candidate);
            }
        }
        if best == before {
            return best;
        }
    }
}
