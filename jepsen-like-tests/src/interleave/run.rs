//! Many worlds on a few threads. The result depends on seed and count only, never on the threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::choices::Choices;
use super::found::{Found, Kind};
use super::parked::listen;
use super::plans::FAMILIES;
use super::world::{Counts, Ended, play};

/// Worlds whose findings are kept.
const FAILING_KEPT_MAX: usize = 20;

/// Books that may stop themselves before a run is ended: each costs a thread.
const ASSERTIONS_MAX: u64 = 200;

/// How often progress is told.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed.
    pub seed: u64,
    /// How many worlds.
    pub count: u64,
    /// On how many threads.
    pub threads: usize,
    /// Ends at the first world that fails.
    pub until_found: bool,
}

/// A world that failed.
#[derive(Clone, Debug)]
pub struct Failing {
    /// Its number under the seed.
    pub number: u64,
    /// What was found in it.
    pub found: Vec<Found>,
}

/// What a run found.
pub struct Report {
    /// Worlds that were played.
    pub played: u64,
    /// How long it took, s.
    pub seconds: f64,
    /// What happened in all of them.
    pub counts: Counts,
    /// Worlds by the kinds of violation found in them.
    pub by_kind: BTreeMap<Kind, u64>,
    /// The first worlds that failed.
    pub failing: Vec<Failing>,
    /// How long outcomes were unknown to their gateways, ms of the worlds' time.
    pub unknown_ms: Histogram<u64>,
    /// Commands a world, for the plot.
    pub commands: Histogram<u64>,
    /// A hash of everything that happened, the same for the same seed and count.
    pub trace: u64,
}

impl Report {
    /// Worlds in which something was found, once for each kind.
    pub fn violations(&self) -> u64 {
        self.by_kind.values().sum()
    }
}

/// What one thread has counted.
struct Part {
    counts: Counts,
    found: Vec<Failing>,
    by_kind: BTreeMap<Kind, u64>,
    unknown_ms: Histogram<u64>,
    commands: Histogram<u64>,
    trace: u64,
}

/// What a thread tells.
enum Said {
    Finished,
    Panicked { number: u64, said: String },
}

/// Plays all worlds; `progress` is told now and then how many are done.
pub fn run(options: &Options, progress: impl Fn(u64)) -> Report {
    // Here, where a plan that is not well formed stops the program, and not on a thread that is parked.
    LazyLock::force(&FAMILIES);
    let began = Instant::now();
    let (sender, said) = channel();
    let mut parts = Vec::new();
    let next = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicU64::new(0));
    let mut running = 0;
    for _ in 0..options.threads.max(1) {
        parts.push(spawn(options, &next, &done, &sender));
        running += 1;
    }
    let mut assertions = 0;
    while running > 0 {
        match said.recv_timeout(PROGRESS_INTERVAL) {
            Ok(Said::Finished) => running -= 1,
            Ok(Said::Panicked { number, said }) => {
                assertions += 1;
                done.fetch_add(1, Ordering::Relaxed);
                let part = parts.last().map(Arc::clone);
                if let Some(part) = part {
                    add_failing(&mut lock(&part), number, vec![Found::new(Kind::Assertion, said)]);
                }
                if assertions >= ASSERTIONS_MAX || options.until_found {
                    next.store(options.count, Ordering::Relaxed);
                }
                parts.push(spawn(options, &next, &done, &sender));
            }
            Err(_) => {}
        }
        progress(done.load(Ordering::Relaxed));
    }
    let mut report = Report {
        played: done.load(Ordering::Relaxed),
        seconds: began.elapsed().as_secs_f64(),
        counts: Counts::default(),
        by_kind: BTreeMap::new(),
        failing: Vec::new(),
        unknown_ms: histogram(),
        commands: histogram(),
        trace: 0,
    };
    for part in parts {
        add_part(&mut report, &lock(&part));
    }
    report.failing.sort_by_key(|failing| failing.number);
    report.failing.truncate(FAILING_KEPT_MAX);
    report
}

fn spawn(
    options: &Options,
    next: &Arc<AtomicU64>,
    done: &Arc<AtomicU64>,
    sender: &Sender<Said>,
) -> Arc<Mutex<Part>> {
    let part = Arc::new(Mutex::new(Part {
        counts: Counts::default(),
        found: Vec::new(),
        by_kind: BTreeMap::new(),
        unknown_ms: histogram(),
        commands: histogram(),
        trace: 0,
    }));
    let (options, next, done, sender) = (options.clone(), Arc::clone(next), Arc::clone(done), sender.clone());
    let mine = Arc::clone(&part);
    std::thread::spawn(move || {
        let current = Arc::new(AtomicU64::new(0));
        let (panicked, at) = (sender.clone(), Arc::clone(&current));
        listen(move |said| {
            let _ = panicked.send(Said::Panicked { number: at.load(Ordering::Relaxed), said });
        });
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= options.count {
                break;
            }
            current.store(number, Ordering::Relaxed);
            let mut choices = Choices::seeded(options.seed, number);
            let ended = play(&mut choices, None);
            if options.until_found && !ended.found.is_empty() {
                next.store(options.count, Ordering::Relaxed);
            }
            add_world(&mut lock(&mine), number, ended, &choices.into_tape());
            done.fetch_add(1, Ordering::Relaxed);
        }
        let _ = sender.send(Said::Finished);
    });
    part
}

/// The most that a histogram tells apart: a day, ms.
const HISTOGRAM_MAX: u64 = 86_400_000;

/// Up to a day of the world's time, to three digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(HISTOGRAM_MAX, 3)
        .unwrap_or_else(|error| panic!("three digits are allowed: {error}"))
}

fn lock(part: &Mutex<Part>) -> std::sync::MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add_world(part: &mut Part, number: u64, ended: Ended, tape: &[u32]) {
    part.counts.add(&ended.counts);
    for unknown_ms in &ended.unknown_ms {
        part.unknown_ms.saturating_record(*unknown_ms);
    }
    part.commands.saturating_record(ended.counts.commands);
    let hash = tape.iter().fold(number, |hash, choice| {
        (hash ^ u64::from(*choice)).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
    });
    part.trace = part.trace.wrapping_add(hash);
    if !ended.found.is_empty() {
        add_failing(part, number, ended.found);
    }
}

fn add_failing(part: &mut Part, number: u64, found: Vec<Found>) {
    let mut kinds: Vec<_> = found.iter().map(|found| found.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        *part.by_kind.entry(kind).or_default() += 1;
    }
    part.found.push(Failing { number, found });
    part.found.sort_by_key(|failing| failing.number);
    part.found.truncate(FAILING_KEPT_MAX);
}

fn add_part(report: &mut Report, part: &Part) {
    report.counts.add(&part.counts);
    for (kind, count) in &part.by_kind {
        *report.by_kind.entry(*kind).or_default() += count;
    }
    report.failing.extend(part.found.iter().cloned());
    // Both are of the same shape.
    let _ = report.unknown_ms.add(&part.unknown_ms);
    let _ = report.commands.add(&part.commands);
    report.trace = report.trace.wrapping_add(part.trace);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(threads: usize) -> Report {
        run(&Options { seed: 5, count: 300, threads, until_found: false }, |_| {})
    }

    #[test]
    fn nothing_is_found_and_the_threads_do_not_matter() {
        let (one, three) = (short(1), short(3));
        if let Some(failing) = one.failing.first() {
            let found: Vec<_> = failing.found.iter().map(ToString::to_string).collect();
            panic!("world {} of seed 5: {found:#?}", failing.number);
        }
        assert_eq!((one.played, one.trace, one.counts), (three.played, three.trace, three.counts));
        assert!(one.counts.settled > 200 && one.counts.refused > 100, "{:?}", one.counts);
        assert!(one.counts.leaders > 100 && one.counts.restores > 100 && one.counts.lost > 300);
    }
}
