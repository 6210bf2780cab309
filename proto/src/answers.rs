//! Answers to commands, with the revision they were decided at.

use bytes::Bytes;
use holdfast_ledger::answer::{Answer, Receipt};
use holdfast_ledger::ids::ReservationId;

use crate::failure::Failure;
use crate::field::{FieldError, InField, fixed, name, required};
use crate::reasons::ErrorReason;
use crate::v1;
use crate::v1::batch_answer::Outcome as BatchOutcome;
use crate::v1::command_answer::Outcome as WireOutcome;

/// The book's digest at a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestAt {
    /// The revision after which it was taken.
    pub revision: u64,
    /// The digest.
    pub digest: u128,
}

/// What a command that was not refused did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The reservation's receipt.
    Receipt(Box<Receipt>),
    /// A tombstone stands for an id never seen.
    Tombstone(ReservationId),
}

/// The answer to a command that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The book's revision when it was decided.
    pub revision: u64,
    /// The book's digest, if it was asked for.
    pub digest: Option<DigestAt>,
    /// What it did.
    pub done: Done,
}

/// The answer to a command of the `Ledger` service, as its message or as a failure with the revision.
pub fn encode_answer(
    answer: &Answer,
    revision: u64,
    digest: Option<DigestAt>,
) -> Result<v1::CommandAnswer, Failure> {
    let outcome = match answer {
        Answer::Reservation(receipt) => WireOutcome::Receipt(receipt.as_ref().into()),
        Answer::Tombstone { id } => WireOutcome::Tombstone(v1::Tombstone { id: id.to_string() }),
        Answer::Refused(refusal) => return Err(Failure::from(refusal).at_revision(revision)),
        Answer::Published { .. }
        | Answer::Frozen { .. }
        | Answer::Unfrozen { .. }
        | Answer::Adjusted(_)
        | Answer::Webhook { .. }
        | Answer::Ticked { .. }
        | Answer::Rules { .. } => return Err(foreign_answer(answer, revision)),
    };
    let digest = digest.map(v1::BookDigest::from);
    Ok(v1::CommandAnswer { revision, digest, outcome: Some(outcome) })
}

/// The answer to a publish or to a tenant's record.
pub fn encode_published(answer: &Answer, revision: u64) -> Result<v1::PublishResponse, Failure> {
    match answer {
        Answer::Published { generation, changed } => {
            Ok(v1::PublishResponse { revision, generation: *generation, changed: *changed })
        }
        Answer::Refused(refusal) => Err(Failure::from(refusal).at_revision(revision)),
        _ => Err(foreign_answer(answer, revision)),
    }
}

/// The answer to a freeze.
pub fn encode_frozen(answer: &Answer, revision: u64) -> Result<v1::FreezeResponse, Failure> {
    match answer {
        Answer::Frozen { changed } => Ok(v1::FreezeResponse { revision, changed: *changed }),
        Answer::Refused(refusal) => Err(Failure::from(refusal).at_revision(revision)),
        _ => Err(foreign_answer(answer, revision)),
    }
}

/// The answer to setting a webhook.
pub fn encode_webhook_set(answer: &Answer, revision: u64) -> Result<v1::SetWebhookResponse, Failure> {
    match answer {
        Answer::Webhook { changed } => Ok(v1::SetWebhookResponse { revision, changed: *changed }),
        Answer::Refused(refusal) => Err(Failure::from(refusal).at_revision(revision)),
        _ => Err(foreign_answer(answer, revision)),
    }
}

/// The answer to an unfreeze.
pub fn encode_unfrozen(answer: &Answer, revision: u64) -> Result<v1::UnfreezeResponse, Failure> {
    match answer {
        Answer::Unfrozen { changed } => Ok(v1::UnfreezeResponse { revision, changed: *changed }),
        Answer::Refused(refusal) => Err(Failure::from(refusal).at_revision(revision)),
        _ => Err(foreign_answer(answer, revision)),
    }
}

/// The book answered another kind of command: something was applied, so nothing may be called undone.
pub(crate) fn foreign_answer(answer: &Answer, revision: u64) -> Failure {
    let message = format!("the answer is of another kind of command: {answer:?}");
    Failure::new(ErrorReason::NodeFailed, message).at_revision(revision)
}

/// A slot of a batch's answer.
pub fn encode_batched_answer(
    correlation: u64,
    outcome: Result<v1::CommandAnswer, Failure>,
) -> v1::BatchAnswer {
    let outcome = match outcome {
        Ok(answer) => BatchOutcome::Answer(answer),
        Err(failure) => BatchOutcome::Failure(failure.into()),
    };
    v1::BatchAnswer { correlation, outcome: Some(outcome) }
}

/// What a slot of a batch's answer says. The outer error is of the message itself:
/// nothing may be concluded from it.
pub fn decode_batched_answer(wire: v1::BatchAnswer) -> Result<Result<Decided, Failure>, FieldError> {
    match required("outcome", wire.outcome)? {
        BatchOutcome::Answer(answer) => Ok(Ok(Decided::try_from(answer).in_field("answer")?)),
        BatchOutcome::Failure(failure) => Ok(Err(Failure::try_from(failure).in_field("failure")?)),
    }
}

impl TryFrom<v1::CommandAnswer> for Decided {
    type Error = FieldError;

    fn try_from(wire: v1::CommandAnswer) -> Result<Self, FieldError> {
        let done = match required("outcome", wire.outcome)? {
            WireOutcome::Receipt(receipt) => {
                Done::Receipt(Box::new(Receipt::try_from(receipt).in_field("receipt")?))
            }
            WireOutcome::Tombstone(tombstone) => {
                Done::Tombstone(name("id", &tombstone.id).in_field("tombstone")?)
            }
        };
        let digest = wire.digest.map(DigestAt::try_from).transpose().in_field("digest")?;
        Ok(Decided { revision: wire.revision, digest, done })
    }
}

impl From<DigestAt> for v1::BookDigest {
    fn from(DigestAt { revision, digest }: DigestAt) -> Self {
        v1::BookDigest { revision, digest: encode_digest(digest) }
    }
}

impl TryFrom<v1::BookDigest> for DigestAt {
    type Error = FieldError;

    fn try_from(wire: v1::BookDigest) -> Result<Self, FieldError> {
        Ok(DigestAt { revision: wire.revision, digest: decode_digest("digest", &wire.digest)? })
    }
}

/// A digest's 16 bytes, big endian.
pub fn encode_digest(digest: u128) -> Bytes {
    Bytes::copy_from_slice(&digest.to_be_bytes())
}

/// The digest in a field.
pub fn decode_digest(field: &str, bytes: &[u8]) -> Result<u128, FieldError> {
    Ok(u128::from_be_bytes(fixed(field, bytes)?))
}
