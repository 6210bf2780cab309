//! What goes wrong, and when.

use std::io;

/// How much of what was not synced survives a reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    All,
    /// Each file keeps a prefix of its pending writes, the last one torn at a sector; each directory a prefix of its changes.
    Suffix,
    /// Each pending sector survives by itself with a drawn probability; each directory keeps a prefix of its changes.
    Random,
    /// Everything (the process died, the machine did not).
    Nothing,
}

/// A mutating call, as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `create_dir`.
    CreateDir(String),
    /// `create`.
    Create(String),
    /// `rename`.
    Rename(String, String),
    /// `remove`.
    Remove(String),
    /// `sync_dir`.
    SyncDir(String),
    /// `write_at`: offset and length.
    Write(u64, usize),
    /// `truncate`: size.
    Truncate(u64),
    /// `sync`.
    Sync,
}

#[derive(Default)]
pub(super) struct Faults {
    pub(super) down: bool,
    pub(super) calls: u64,
    pub(super) capacity_bytes: Option<u64>,
    pub(super) fail_next_sync: bool,
    pub(super) fail_next_read: bool,
    pub(super) recorded: Option<Vec<Call>>,
    fail_at: Option<(u64, io::ErrorKind)>,
    crash_at: Option<(u64, bool)>,
}

/// What is to become of one call.
pub(super) enum Verdict {
    Run,
    Fail(io::Error),
    RunThenFail(io::Error),
}

impl Verdict {
    pub(super) fn run<T>(self, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self {
            Self::Run => call(),
            Self::Fail(error) => Err(error),
            Self::RunThenFail(error) => call().and(Err(error)),
        }
    }
}

impl Faults {
    pub(super) fn after_reboot(&self) -> Self {
        Self { calls: self.calls, ..Self::default() }
    }

    pub(super) fn fail_nth(&mut self, nth: u64, kind: io::ErrorKind) {
        self.fail_at = Some((self.calls + nth, kind));
    }

    pub(super) fn crash_at(&mut self, nth: u64, effect: bool) {
        self.crash_at = Some((self.calls + nth, effect));
    }

    pub(super) fn check_up(&self) -> io::Result<()> {
        if self.down { Err(power_gone()) } else { Ok(()) }
    }

    pub(super) fn judge_read(&mut self) -> io::Result<()> {
        self.check_up()?;
        if std::mem::take(&mut self.fail_next_read) {
            return Err(io::Error::other("simulated read error"));
        }
        Ok(())
    }

    pub(super) fn judge(&mut self, call: impl FnOnce() -> Call, bytes_after: u64) -> Verdict {
        if self.down {
            return Verdict::Fail(power_gone());
        }
        self.calls += 1;
        let call = call();
        let write = matches!(call, Call::Write(..) | Call::Create(_));
        if let Some(recorded) = &mut self.recorded {
            recorded.push(call);
        }
        if let Some((at, effect)) = self.crash_at
            && at == self.calls
        {
            self.down = true;
            return if effect { Verdict::RunThenFail(power_gone()) } else { Verdict::Fail(power_gone()) };
        }
        if let Some((at, kind)) = self.fail_at
            && at == self.calls
        {
            return Verdict::Fail(io::Error::new(kind, "simulated error"));
        }
        if write && self.capacity_bytes.is_some_and(|max| bytes_after > max) {
            return Verdict::Fail(io::Error::new(io::ErrorKind::StorageFull, "simulated disk is full"));
        }
        Verdict::Run
    }
}

fn power_gone() -> io::Error {
    io::Error::other("simulated power loss")
}
