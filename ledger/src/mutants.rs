//! Deliberate bugs, to see that the harness finds them. They exist only in builds with the feature `mutants`,
//! one at a time and on one thread; without it every question below is the constant `false`, and the product
//! refuses to be built with it.
//!
//! The list of them and what each breaks: jepsen-like-tests/src/interleave/mutants.rs.

/// Whether this build has them.
pub const BUILT_IN: bool = cfg!(feature = "mutants");

#[cfg(feature = "mutants")]
mod planted {
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// Plants a bug on this thread, or takes it away.
    pub fn plant(name: Option<&'static str>) {
        PLANTED.with(|planted| planted.set(name));
    }

    /// Whether this bug is planted here.
    pub fn on(name: &str) -> bool {
        PLANTED.with(|planted| planted.get() == Some(name))
    }
}

#[cfg(feature = "mutants")]
pub use planted::{on, plant};

/// Whether this bug is planted here: never, in this build.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub const fn on(_name: &str) -> bool {
    false
}
