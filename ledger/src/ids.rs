//! Names and identifiers, with the syntax that every surface accepts.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::limits::NAME_BYTES_MAX;

/// Why a name or an id was refused. Says what is wrong with the text, not which field it was in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("must not be empty")]
    Empty,
    /// The text is longer than [`NAME_BYTES_MAX`].
    #[error("is {0} bytes long; at most {NAME_BYTES_MAX} are allowed")]
    TooLong(usize),
    /// A character outside `A-Z a-z 0-9 . _ : @ / + -`, or a first character that is not alphanumeric.
    #[error("has the character {0:?}; allowed are A-Z a-z 0-9 and, after the first, . _ : @ / + -")]
    BadCharacter(char),
    /// Not 26 characters of Crockford base 32 in the range of a ULID.
    #[error("is not a ULID (26 characters of Crockford base 32)")]
    NotAUlid,
}

/// Bytes that a name may have after its first one. A table, because names are checked wherever a command is
/// read: on every replica, several to a command.
const NAME_BYTES: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        allowed[byte] = (byte as u8).is_ascii_alphanumeric()
            || matches!(byte as u8, b'.' | b'_' | b':' | b'@' | b'/' | b'+' | b'-');
        byte += 1;
    }
    allowed
};

fn check_name(text: &str) -> Result<(), IdError> {
    let Some(first) = text.chars().next() else { return Err(IdError::Empty) };
    if text.len() > NAME_BYTES_MAX {
        return Err(IdError::TooLong(text.len()));
    }
    if !first.is_ascii_alphanumeric() {
        return Err(IdError::BadCharacter(first));
    }
    if text.bytes().all(|byte| NAME_BYTES[usize::from(byte)]) {
        return Ok(());
    }
    // Every byte of a character beyond ASCII is refused, so the first character that is not ASCII or not
    // in the table is the one to name.
    let refused = |c: &char| !c.is_ascii() || !NAME_BYTES[*c as usize];
    Err(IdError::BadCharacter(text.chars().find(refused).unwrap_or(first)))
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks the syntax and keeps the text.
            pub fn new(text: impl AsRef<str>) -> Result<Self, IdError> {
                let text = text.as_ref();
                check_name(text)?;
                Ok(Self(text.into()))
            }

            /// The text as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// Who pays: the tenant of a request.
    TenantId
);
name!(
    /// A user within a tenant.
    UserId
);
name!(
    /// What a request does, for example `chat.generate`; matched by the plan's routes.
    RouteName
);
name!(
    /// A tenant's own name for a reservation, besides the reservation's id.
    IdempotencyKey
);
name!(
    /// The model a request names.
    ModelName
);
name!(
    /// The region a request is served in.
    RegionName
);
name!(
    /// The id of a limit in the plan.
    LimitId
);
name!(
    /// The id of a tier in the plan, for example `standard`.
    TierId
);
name!(
    /// The operation that a start binds to a reservation.
    OperationId
);
name!(
    /// Who gave an operator's command.
    ActorName
);

macro_rules! ulid {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(pub u128);

        impl $type {
            /// The time in the id: milliseconds since the Unix epoch, 48 bits.
            pub fn time_ms(self) -> u64 {
                (self.0 >> 80) as u64
            }

            /// An id from its time and 80 bits chosen by the caller (higher bits are ignored).
            pub fn from_parts(time_ms: u64, random: u128) -> Self {
                $type(ulid::Ulid::from_parts(time_ms, random).0)
            }
        }

        impl FromStr for $type {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                // 26 characters have 130 bits: those of a ULID begin with 0 to 7. The crate drops the two bits above.
                match ulid::Ulid::from_string(text) {
                    Ok(id) if text.as_bytes().first().is_some_and(|first| *first <= b'7') => Ok($type(id.0)),
                    _ => Err(IdError::NotAUlid),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&ulid::Ulid(self.0), f)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

ulid!(
    /// A reservation's id: a ULID that the caller picked.
    ReservationId
);
ulid!(
    /// The id of an operator's adjustment: a ULID that the operator picked.
    AdjustmentId
);

impl From<&RouteName> for LimitId {
    /// Names share one syntax.
    fn from(route: &RouteName) -> Self {
        LimitId(Arc::clone(&route.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_outside_the_range_of_a_ulid_is_refused() {
        let largest = format!("7{}", "Z".repeat(25));
        assert_eq!(largest.parse::<ReservationId>(), Ok(ReservationId(u128::MAX)));
        for text in [format!("8{}", "0".repeat(25)), "Z".repeat(26), "0".repeat(25), String::new()] {
            assert_eq!(text.parse::<ReservationId>(), Err(IdError::NotAUlid), "{text}");
        }
    }

    #[test]
    fn names_are_refused_by_their_first_bad_character() {
        let refused = |text: &str| TenantId::new(text).err();
        assert_eq!(refused(""), Some(IdError::Empty));
        assert_eq!(refused(&"x".repeat(129)), Some(IdError::TooLong(129)));
        assert_eq!(refused("-a"), Some(IdError::BadCharacter('-')));
        assert_eq!(refused("é"), Some(IdError::BadCharacter('é')));
        assert_eq!(refused("a b"), Some(IdError::BadCharacter(' ')));
        assert_eq!(refused("aß-b c"), Some(IdError::BadCharacter('ß')));
        assert_eq!(refused("a\u{7f}"), Some(IdError::BadCharacter('\u{7f}')));
        assert_eq!(refused("A9._:@/+-z"), None);
        assert_eq!(refused(&"x".repeat(128)), None);
    }
}
