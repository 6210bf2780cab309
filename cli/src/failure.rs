//! Why a command did not do what was asked, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

/// The kinds of failure that scripts can tell apart by the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It was tried and failed.
    Failed,
    /// The command line asks for something that makes no sense.
    Usage,
    /// The cluster answered and said no.
    Refused,
    /// No member that can decide was reached; certainly nothing was done.
    Unavailable,
    /// It may have been done: ask by the same id.
    Unknown,
}

impl Kind {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::Refused => 3,
            Kind::Unavailable => 4,
            Kind::Unknown => 5,
        }
    }
}

/// A failure: what happened, to what, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Decides the exit code.
    pub kind: Kind,
    /// What happened and to what.
    pub problem: String,
    /// What to do next, if there is something.
    pub advice: Option<String>,
}

impl Failure {
    /// It was tried and failed.
    pub fn failed(problem: impl Into<String>) -> Self {
        Self::new(Kind::Failed, problem)
    }

    /// The command line asks for something that makes no sense.
    pub fn usage(problem: impl Into<String>) -> Self {
        Self::new(Kind::Usage, problem)
    }

    /// A failure of some kind.
    pub fn new(kind: Kind, problem: impl Into<String>) -> Self {
        Failure { kind, problem: problem.into(), advice: None }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "holdfast: {}", self.problem)?;
        match &self.advice {
            Some(advice) => write!(f, "\n{advice}"),
            None => Ok(()),
        }
    }
}

impl From<&Failure> for ExitCode {
    fn from(failure: &Failure) -> Self {
        ExitCode::from(failure.kind.code())
    }
}

/// What every command ends with.
pub type Outcome<T = ()> = Result<T, Failure>;
