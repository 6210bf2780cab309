//! The four commands of every request, written and read without the generated structs.
//!
//! The bytes are those that the generated code writes (a test compares them over random commands);
//! what differs is the way: no string is allocated twice, nothing is measured twice. Every replica
//! reads every command, so this is the hottest code of the wire. Reading takes the canonical form only,
//! every field once and in order; anything else, and whatever is wrong with a field, is left to the
//! generated code, which knows all of protobuf and names what it refuses.

use bytes::BufMut;
use holdfast_ledger::command::{Release, Request, Reserve, Settle, Start};
use holdfast_ledger::{Amounts, Command, ReservationId, Unit};
use prost::encoding::{decode_varint, encode_varint, encoded_len_varint};

use crate::words::Word;

/// A field's number and wire type in one byte, as protobuf has it: number · 8 + type.
const fn tag(number: u8, wire_type: u8) -> u8 {
    number << 3 | wire_type
}
const VARINT: u8 = 0;
const BYTES: u8 = 2;

const ID_BYTES: usize = 16;
const DIGEST_BYTES: usize = 32;

/// Appends a `LogCommand`'s bytes after their length. False if it is not one of the four.
pub(super) fn encode(command: &Command, out: &mut Vec<u8>) -> bool {
    match command {
        Command::Reserve(reserve) => {
            let request_len = request_len(&reserve.request);
            let attempt = u64::from(reserve.attempt);
            let key = reserve.key.as_ref().map(|key| key.as_str());
            let body = 2
                + ID_BYTES
                + varint_field_len(attempt)
                + field_len(request_len)
                + 2
                + DIGEST_BYTES
                + optional_len(key);
            open(out, 1, body);
            put_bytes(out, 1, &reserve.id.0.to_be_bytes());
            put_varint(out, 2, attempt);
            put_head(out, 3, request_len);
            put_request(out, &reserve.request);
            put_bytes(out, 4, &reserve.request_digest);
            if let Some(key) = key {
                put_bytes(out, 5, key.as_bytes());
            }
        }
        Command::Start(Start { id, operation }) => {
            open(out, 2, 2 + ID_BYTES + field_len(operation.as_str().len()));
            put_bytes(out, 1, &id.0.to_be_bytes());
            put_bytes(out, 2, operation.as_str().as_bytes());
        }
        Command::Settle(Settle { id, operation, actual, estimated }) => {
            let estimated = u64::from(*estimated);
            let body = 2
                + ID_BYTES
                + field_len(operation.as_str().len())
                + amounts_field_len(actual)
                + varint_field_len(estimated);
            open(out, 3, body);
            put_bytes(out, 1, &id.0.to_be_bytes());
            put_bytes(out, 2, operation.as_str().as_bytes());
            put_amounts(out, 3, amounts_len(actual), actual);
            put_varint(out, 4, estimated);
        }
        Command::Release(Release { id }) => {
            open(out, 4, 2 + ID_BYTES);
            put_bytes(out, 1, &id.0.to_be_bytes());
        }
        _ => return false,
    }
    true
}

/// The length of the whole, the variant's head, and room for its body.
fn open(out: &mut Vec<u8>, variant: u8, body: usize) {
    let whole = field_len(body);
    out.reserve(whole + 10);
    encode_varint(whole as u64, out);
    put_head(out, variant, body);
}

fn put_head(out: &mut Vec<u8>, number: u8, len: usize) {
    out.put_u8(tag(number, BYTES));
    encode_varint(len as u64, out);
}

fn put_bytes(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    put_head(out, number, bytes.len());
    out.put_slice(bytes);
}

/// As proto3 has it: 0 is left out.
fn put_varint(out: &mut Vec<u8>, number: u8, value: u64) {
    if value != 0 {
        out.put_u8(tag(number, VARINT));
        encode_varint(value, out);
    }
}

fn put_request(out: &mut Vec<u8>, request: &Request) {
    put_bytes(out, 1, request.tenant.as_str().as_bytes());
    if let Some(user) = &request.user {
        put_bytes(out, 2, user.as_str().as_bytes());
    }
    put_bytes(out, 3, request.route.as_str().as_bytes());
    if let Some(model) = &request.model {
        put_bytes(out, 4, model.as_str().as_bytes());
    }
    if let Some(region) = &request.region {
        put_bytes(out, 5, region.as_str().as_bytes());
    }
    put_amounts(out, 6, amounts_len(&request.amounts), &request.amounts);
    if let Some(hold_ttl_ms) = request.hold_ttl_ms {
        // `optional`: written even if it is 0.
        out.put_u8(tag(7, VARINT));
        encode_varint(hold_ttl_ms, out);
    }
    put_amounts(out, 8, amounts_len(&request.minimum), &request.minimum);
}

fn put_amounts(out: &mut Vec<u8>, number: u8, len: usize, amounts: &Amounts) {
    if len == 0 {
        return;
    }
    put_head(out, number, len);
    for (unit, amount) in amounts.iter() {
        put_head(out, 1, amount_len(amount));
        put_varint(out, 1, unit.number() as u64);
        put_varint(out, 2, amount);
    }
}

/// The bytes of a field with a one-byte tag and a body of `len` bytes.
fn field_len(len: usize) -> usize {
    1 + encoded_len_varint(len as u64) + len
}

fn optional_len(text: Option<&str>) -> usize {
    text.map_or(0, |text| field_len(text.len()))
}

fn varint_field_len(value: u64) -> usize {
    if value == 0 { 0 } else { 1 + encoded_len_varint(value) }
}

/// A unit's number is below 128: tag and one byte.
fn amount_len(amount: u64) -> usize {
    2 + varint_field_len(amount)
}

fn amounts_len(amounts: &Amounts) -> usize {
    amounts.iter().map(|(_, amount)| field_len(amount_len(amount))).sum()
}

fn request_len(request: &Request) -> usize {
    field_len(request.tenant.as_str().len())
        + optional_len(request.user.as_ref().map(|name| name.as_str()))
        + field_len(request.route.as_str().len())
        + optional_len(request.model.as_ref().map(|name| name.as_str()))
        + optional_len(request.region.as_ref().map(|name| name.as_str()))
        + amounts_field_len(&request.amounts)
        + request.hold_ttl_ms.map_or(0, |ttl| 1 + encoded_len_varint(ttl))
        + amounts_field_len(&request.minimum)
}

fn amounts_field_len(amounts: &Amounts) -> usize {
    match amounts_len(amounts) {
        0 => 0,
        len => field_len(len),
    }
}

/// The command in a `LogCommand`'s bytes; `None` if they are not in canonical form, not one of the
/// four, or wrong.
pub(super) fn decode(bytes: &[u8]) -> Option<Command> {
    let mut whole = Reader(bytes);
    let variant = *bytes.first()?;
    let mut body = whole.message(variant >> 3)?;
    whole.end()?;
    let id = ReservationId(u128::from_be_bytes(body.bytes(1)?.try_into().ok()?));
    let command = match variant >> 3 {
        1 => Command::Reserve(Reserve {
            id,
            attempt: u32::try_from(body.varint(2)?.unwrap_or(0)).ok()?,
            request: read_request(body.message(3)?)?,
            request_digest: body.bytes(4)?.try_into().ok()?,
            key: body.optional_name(5)?,
        }),
        2 => Command::Start(Start { id, operation: body.name(2)? }),
        3 => Command::Settle(Settle {
            id,
            operation: body.name(2)?,
            actual: read_amounts(&mut body, 3)?,
            estimated: body.varint(4)?.unwrap_or(0) != 0,
        }),
        4 => Command::Release(Release { id }),
        _ => return None,
    };
    body.end()?;
    Some(command)
}

fn read_request(mut body: Reader<'_>) -> Option<Request> {
    let request = Request {
        tenant: body.name(1)?,
        user: body.optional_name(2)?,
        route: body.name(3)?,
        model: body.optional_name(4)?,
        region: body.optional_name(5)?,
        amounts: read_amounts(&mut body, 6)?,
        hold_ttl_ms: body.varint(7)?,
        minimum: read_amounts(&mut body, 8)?,
    };
    body.end()?;
    Some(request)
}

fn read_amounts(body: &mut Reader<'_>, number: u8) -> Option<Amounts> {
    let mut amounts = Amounts::NONE;
    if !body.is_at(tag(number, BYTES)) {
        return Some(amounts);
    }
    let mut list = body.message(number)?;
    while list.end().is_none() {
        let mut one = list.message(1)?;
        let unit = Unit::of_number(i32::try_from(one.varint(1)?.unwrap_or(0)).ok()?)?;
        if amounts.get(unit).is_some() {
            return None;
        }
        amounts.set(unit, Some(one.varint(2)?.unwrap_or(0)));
        one.end()?;
    }
    Some(amounts)
}

/// Bytes that are left to read. Everything is `None` that is not as expected.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn is_at(&self, tag: u8) -> bool {
        self.0.first() == Some(&tag)
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    fn bytes(&mut self, number: u8) -> Option<&'a [u8]> {
        if !self.is_at(tag(number, BYTES)) {
            return None;
        }
        self.0 = &self.0[1..];
        let len = usize::try_from(decode_varint(&mut self.0).ok()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn message(&mut self, number: u8) -> Option<Reader<'a>> {
        self.bytes(number).map(Reader)
    }

    fn name<T: std::str::FromStr>(&mut self, number: u8) -> Option<T> {
        std::str::from_utf8(self.bytes(number)?).ok()?.parse().ok()
    }

    /// The outer `None` is an error, the inner one absence.
    fn optional_name<T: std::str::FromStr>(&mut self, number: u8) -> Option<Option<T>> {
        if self.is_at(tag(number, BYTES)) { self.name(number).map(Some) } else { Some(None) }
    }

    /// The outer `None` is an error, the inner one absence.
    fn varint(&mut self, number: u8) -> Option<Option<u64>> {
        if !self.is_at(tag(number, VARINT)) {
            return Some(None);
        }
        self.0 = &self.0[1..];
        decode_varint(&mut self.0).ok().map(Some)
    }
}
