//! What is stored in etcd: one key an account and one key a reservation, in fixed little-endian records.

/// The columns of an account that a reserve and a settle touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    pub available: u64,
    pub reserved: u64,
    pub spent: u64,
}

impl Account {
    /// Holds `amount`, if it is there.
    pub fn reserve(self, amount: u64) -> Option<Account> {
        Some(Account {
            available: self.available.checked_sub(amount)?,
            reserved: self.reserved.checked_add(amount)?,
            spent: self.spent,
        })
    }

    /// Ends a hold of `held` that used `actual` of it.
    pub fn settle(self, held: u64, actual: u64) -> Option<Account> {
        Some(Account {
            available: self.available.checked_add(held.checked_sub(actual)?)?,
            reserved: self.reserved.checked_sub(held)?,
            spent: self.spent.checked_add(actual)?,
        })
    }

    /// The stored bytes.
    pub fn encode(self) -> Vec<u8> {
        [self.available, self.reserved, self.spent].iter().flat_map(|column| column.to_le_bytes()).collect()
    }

    /// Reads stored bytes.
    pub fn decode(bytes: &[u8]) -> Option<Account> {
        let column = |i: usize| Some(u64::from_le_bytes(bytes.get(i * 8..i * 8 + 8)?.try_into().ok()?));
        Some(Account { available: column(0)?, reserved: column(1)?, spent: column(2)? })
    }
}

/// The key of an account.
pub fn account_key(number: usize) -> Vec<u8> {
    format!("account/{number:08}").into_bytes()
}

/// The key of a reservation.
pub fn reservation_key(id: u128) -> Vec<u8> {
    format!("reservation/{id:032x}").into_bytes()
}

/// The stored bytes of a reservation: state (1 = RESERVED, 2 = SETTLED), account, held and used amounts.
pub fn encode_reservation(state: u8, account: usize, held: u64, actual: u64) -> Vec<u8> {
    let mut bytes = vec![state];
    for field in [account as u64, held, actual] {
        bytes.extend_from_slice(&field.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_moves_the_actual_to_spent_and_gives_the_rest_back() {
        let start = Account { available: 100, reserved: 0, spent: 0 };
        let held = start.reserve(10);
        assert_eq!(held, Some(Account { available: 90, reserved: 10, spent: 0 }));
        let ended = held.and_then(|account| account.settle(10, 7));
        assert_eq!(ended, Some(Account { available: 93, reserved: 0, spent: 7 }));
        assert_eq!(start.reserve(101), None, "more than is available is refused");
        assert_eq!(start.settle(1, 1), None, "nothing is held");
    }

    #[test]
    fn records_read_back_as_they_were_written() {
        let account = Account { available: u64::MAX, reserved: 1, spent: 2 };
        assert_eq!(Account::decode(&account.encode()), Some(account));
        assert_eq!(Account::decode(b"short"), None);
    }
}
