//! jepsen-like-tests
