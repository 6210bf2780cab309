//! Keeps what sled may do away from the node: errors and panics become one kind of error, and aborts leave a marker.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

use super::record::HistoryRecord;

/// Why the history index cannot answer, or was dropped.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HistoryError {
    /// It is being opened, being rebuilt, or gone for good.
    #[error("the history index is not available: {0}")]
    Unavailable(String),
    /// sled returned an error, panicked, or gave back something that is not a record.
    #[error("the history index has failed: {0}")]
    Failed(String),
}

impl From<sled::Error> for HistoryError {
    fn from(error: sled::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<io::Error> for HistoryError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Where the hook leaves its marker.
static MARKERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static HOOK: Once = Once::new();

/// Runs something that calls sled.
pub(super) fn guarded<T>(run: impl FnOnce() -> Result<T, HistoryError>) -> Result<T, HistoryError> {
    let before = INSIDE.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    INSIDE.set(before);
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(HistoryError::Failed(format!("panic: {text}")))
    })
}

/// From now on a panic inside the index, on whatever thread, leaves a file at `marker` before the process aborts.
pub(super) fn mark_panics(marker: &Path) {
    MARKERS.lock().unwrap_or_else(PoisonError::into_inner).push(marker.to_owned());
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if INSIDE.get() || is_sled_thread() {
                for marker in MARKERS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    // The process is about to end; there is nobody to tell.
                    let _ = std::fs::write(marker, b"sled panicked\n");
                }
            }
            previous(panic);
        }));
    });
}

/// Panics amidst a write if a test asks for it: once a record of the tenant that the environment names was written.
/// Release builds cannot be asked.
pub(super) fn panic_if_asked(records: &[HistoryRecord]) {
    if cfg!(debug_assertions)
        && let Ok(tenant) = std::env::var("HOLDFAST_TEST_SLED_PANICS_AT_TENANT")
        && records.iter().any(|record| record.tenant.as_ref() == Some(&tenant))
    {
        panic!("a test wants sled to panic");
    }
}

/// Forgets a marker's path: its index was closed.
pub(super) fn unmark_panics(marker: &Path) {
    MARKERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| path != marker);
}

/// sled's own threads carry its name.
fn is_sled_thread() -> bool {
    std::thread::current().name().is_some_and(|name| name.contains("sled"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_panic_inside_leaves_the_marker_and_one_outside_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let marker = dir.path().join("suspect");
        mark_panics(&marker);
        let outside = std::thread::spawn(|| panic!("elsewhere"));
        assert!(outside.join().is_err());
        assert!(!marker.exists());
        let error = guarded::<()>(|| panic!("within {}", 1)).unwrap_err();
        assert!(error.to_string().contains("within 1"), "{error}");
        assert!(marker.exists());
        unmark_panics(&marker);
    }
}
