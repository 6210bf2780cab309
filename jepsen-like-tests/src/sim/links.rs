//! The network: what becomes of each message, drawn from the seed.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_node::raft::memory::{Delivery, Links};
use holdfast_node::raft::transport::Lane;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// How good the network is.
#[derive(Clone, Debug)]
pub struct Weather {
    /// One-way delay of a message, µs.
    pub delay_us: Range<u64>,
    /// Messages lost, of a hundred.
    pub loss_percent: u32,
    /// Calls delivered twice, of a hundred.
    pub twice_percent: u32,
}

/// A quiet network.
pub(super) const FAIR: Weather = Weather { delay_us: 200..1_500, loss_percent: 0, twice_percent: 1 };

struct State {
    rng: ChaCha8Rng,
    weather: Weather,
    cut: BTreeSet<(u64, u64)>,
}

/// Links between the nodes, and from the clients to them.
pub struct SimLinks {
    state: Mutex<State>,
}

impl SimLinks {
    /// A fair network that draws from `rng`.
    pub fn new(rng: ChaCha8Rng) -> Self {
        SimLinks { state: Mutex::new(State { rng, weather: FAIR, cut: BTreeSet::new() }) }
    }

    /// Changes the weather.
    pub fn set_weather(&self, weather: Weather) {
        self.lock().weather = weather;
    }

    /// Cuts one direction.
    pub fn cut(&self, from: u64, to: u64) {
        self.lock().cut.insert((from, to));
    }

    /// Mends everything.
    pub fn mend(&self) {
        let mut state = self.lock();
        state.cut.clear();
        state.weather = FAIR;
    }

    /// What becomes of one message.
    pub fn draw(&self, from: u64, to: u64) -> Delivery {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.cut.contains(&(from, to)) || state.rng.random_range(0..100) < state.weather.loss_percent {
            return Delivery::Lost;
        }
        let mut delay = || Duration::from_micros(state.rng.random_range(state.weather.delay_us.clone()));
        let first = delay();
        let again = delay();
        match state.rng.random_range(0..100) < state.weather.twice_percent {
            true => Delivery::Twice(first, again),
            false => Delivery::After(first),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Links for SimLinks {
    fn deliver(&self, from: u64, to: u64, _lane: Lane) -> Delivery {
        self.draw(from, to)
    }
}
