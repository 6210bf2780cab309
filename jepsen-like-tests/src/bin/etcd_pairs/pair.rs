//! One reserve + settle pair by compare-and-swap, retried on conflict.

use std::sync::Mutex;

use crate::account::{Account, account_key, encode_reservation, reservation_key};
use crate::kv::{Compare, KeyValue, Kv, RangeRequest, RequestOp, TxnRequest, TxnResponse, response_op};

/// What each pair holds and uses, in the smallest unit.
pub const HELD: u64 = 10;
pub const ACTUAL: u64 = 7;
/// What each account starts with: more than any run can spend.
pub const OPENING: u64 = 1 << 60;
/// Pause between two looks at what a member has applied.
const APPLY_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// How a client learns an account's revision before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Reads the account, then writes if it has not changed.
    Read,
    /// As `read`, from the member's applied state: cheaper, and the compare still guards the write.
    ReadLocal,
    /// Writes at once from the last value that this process saw; reads only through the conflict's answer.
    Cached,
}

/// An account as it was last seen, and the revision that wrote it.
#[derive(Clone, Copy)]
struct Seen {
    account: Account,
    mod_revision: i64,
}

/// Why a pair did not happen.
#[derive(Debug)]
pub enum Failure {
    /// etcd answered with an error, or not in time.
    Status(tonic::Code),
    /// The stored account is not what the benchmark wrote.
    Wrong(&'static str),
}

/// What the clients of one run share.
pub struct Book {
    mode: Mode,
    cache: Vec<Mutex<Option<Seen>>>,
}

impl Book {
    /// A book of so many accounts, nothing of which has been read yet.
    pub fn new(mode: Mode, accounts: usize) -> Self {
        Book { mode, cache: (0..accounts).map(|_| Mutex::new(None)).collect() }
    }

    /// Writes every account's opening balance.
    pub async fn open(&self, kv: &Kv) -> Result<(), Failure> {
        let opening = Account { available: OPENING, reserved: 0, spent: 0 };
        // etcd's default allows 128 operations a transaction.
        for chunk in (0..self.cache.len()).collect::<Vec<_>>().chunks(100) {
            let success =
                chunk.iter().map(|number| RequestOp::put(&account_key(*number), opening.encode())).collect();
            let request = TxnRequest { success, ..TxnRequest::default() };
            kv.txn(request).await.map_err(|status| Failure::Status(status.code()))?;
        }
        Ok(())
    }

    /// Waits until a member's applied state holds every account: reads of `read-local` go there.
    pub async fn wait_until_applied(&self, kv: &Kv) -> Result<(), Failure> {
        loop {
            let rows = all_accounts(kv, true).await?;
            if rows.len() == self.cache.len() {
                return Ok(());
            }
            tokio::time::sleep(APPLY_PAUSE).await;
        }
    }

    /// Sum of reserved and spent over all accounts, to check what the clients counted.
    pub async fn sums(&self, kv: &Kv) -> Result<(u64, u64), Failure> {
        let mut sums = (0, 0);
        for row in all_accounts(kv, false).await? {
            let account = Account::decode(&row.value).ok_or(Failure::Wrong("account record"))?;
            sums = (sums.0 + account.reserved, sums.1 + account.spent);
        }
        Ok(sums)
    }

    /// Reserves and settles on one account; returns how many times a write met a conflict.
    pub async fn pair(&self, kv: &Kv, number: usize, id: u128) -> Result<u64, Failure> {
        let reservation = reservation_key(id);
        let held = encode_reservation(1, number, HELD, 0);
        let (reserved_at, conflicts) =
            self.swap(kv, number, &reservation, 0, held, |account| account.reserve(HELD)).await?;
        let ended = encode_reservation(2, number, HELD, ACTUAL);
        let settle = |account: Account| account.settle(HELD, ACTUAL);
        let (_, more) = self.swap(kv, number, &reservation, reserved_at, ended, settle).await?;
        Ok(conflicts + more)
    }

    /// Changes the account and writes the reservation in one transaction, if neither changed meanwhile.
    async fn swap(
        &self,
        kv: &Kv,
        number: usize,
        reservation: &[u8],
        reservation_revision: i64,
        record: Vec<u8>,
        change: impl Fn(Account) -> Option<Account>,
    ) -> Result<(i64, u64), Failure> {
        let key = account_key(number);
        let mut seen = self.look(kv, number, &key).await?;
        let mut conflicts = 0;
        loop {
            let next = change(seen.account).ok_or(Failure::Wrong("account columns"))?;
            let request = TxnRequest {
                compare: vec![
                    Compare::unchanged_since(&key, seen.mod_revision),
                    Compare::unchanged_since(reservation, reservation_revision),
                ],
                success: vec![
                    RequestOp::put(&key, next.encode()),
                    RequestOp::put(reservation, record.clone()),
                ],
                failure: vec![RequestOp::get(&key)],
            };
            let answer = kv.txn(request).await.map_err(|status| Failure::Status(status.code()))?;
            if answer.succeeded {
                let mod_revision = answer.header.ok_or(Failure::Wrong("header"))?.revision;
                self.remember(number, Seen { account: next, mod_revision });
                return Ok((mod_revision, conflicts));
            }
            conflicts += 1;
            seen = current(&answer)?;
            self.remember(number, seen);
        }
    }

    async fn look(&self, kv: &Kv, number: usize, key: &[u8]) -> Result<Seen, Failure> {
        if self.mode == Mode::Cached
            && let Some(seen) = *lock(&self.cache[number])
        {
            return Ok(seen);
        }
        let request = RangeRequest {
            key: key.to_vec(),
            serializable: self.mode == Mode::ReadLocal,
            ..RangeRequest::default()
        };
        let answer = kv.range(request).await.map_err(|status| Failure::Status(status.code()))?;
        let row = answer.kvs.first().ok_or(Failure::Wrong("missing account"))?;
        let account = Account::decode(&row.value).ok_or(Failure::Wrong("account record"))?;
        Ok(Seen { account, mod_revision: row.mod_revision })
    }

    fn remember(&self, number: usize, seen: Seen) {
        let mut slot = lock(&self.cache[number]);
        if slot.is_none_or(|old| old.mod_revision < seen.mod_revision) {
            *slot = Some(seen);
        }
    }
}

/// Every account; the range ends before the character that follows the slash.
async fn all_accounts(kv: &Kv, serializable: bool) -> Result<Vec<KeyValue>, Failure> {
    let request = RangeRequest { key: b"account/".to_vec(), range_end: b"account0".to_vec(), serializable };
    Ok(kv.range(request).await.map_err(|status| Failure::Status(status.code()))?.kvs)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The account as a conflict's answer gives it.
fn current(answer: &TxnResponse) -> Result<Seen, Failure> {
    let Some(Some(response_op::Response::Range(range))) = answer.responses.first().map(|op| &op.response)
    else {
        return Err(Failure::Wrong("conflict answer"));
    };
    let row = range.kvs.first().ok_or(Failure::Wrong("missing account"))?;
    let account = Account::decode(&row.value).ok_or(Failure::Wrong("account record"))?;
    Ok(Seen { account, mod_revision: row.mod_revision })
}
