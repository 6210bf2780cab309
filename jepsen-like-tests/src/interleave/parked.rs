//! Work that may panic. Release builds abort on panic, so nothing can be caught: instead the panicking
//! thread says what happened and is parked for ever (where panics unwind, it ends). What it held is never freed, so this is for the few worlds
//! in which the book stops itself.

use std::cell::RefCell;
use std::sync::Once;
use std::sync::mpsc::channel;

/// Stack of a guarded thread, bytes.
const STACK_BYTES: usize = 1 << 20;

type Listener = Box<dyn FnOnce(String)>;

thread_local! {
    static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
}

/// From now on a panic of this thread is told to `listener`, and is its end. Threads without
/// a listener panic as ever.
pub fn listen(listener: impl FnOnce(String) + 'static) {
    install();
    LISTENER.with(|slot| *slot.borrow_mut() = Some(Box::new(listener)));
}

fn install() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let Some(listener) = LISTENER.with(|slot| slot.borrow_mut().take()) else {
                return others(panic);
            };
            listener(panic.to_string().replace('\n', " "));
            // Where panics unwind, as in tests, the thread ends by itself. There it must: a hook that never
            // returns blocks whoever replaces it.
            while cfg!(panic = "abort") {
                std::thread::park();
            }
        }));
    });
}

/// Does work on a thread of its own; `Err`: it panicked, with what it said.
pub fn guarded<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    let (sender, receiver) = channel();
    let spawned = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let panicked = sender.clone();
        listen(move |said| {
            let _ = panicked.send(Err(said));
        });
        let _ = sender.send(Ok(work()));
    });
    if let Err(error) = spawned {
        return Err(format!("no thread: {error}"));
    }
    receiver.recv().unwrap_or_else(|_| Err("the thread ended without a word".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_and_others_go_on() {
        assert_eq!(guarded(|| 7), Ok(7));
        let said = guarded(|| -> u32 { panic!("for a test") });
        assert!(said.is_err_and(|said| said.contains("for a test")));
        assert_eq!(guarded(|| 8), Ok(8));
    }
}
