//! Field case 59 with fewer users: what was seen once leaves the heap as it was. The only test of its process, since it
//! counts what the whole of it has allocated.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../examples/forgetting_memory.rs"]
mod example;

#[test]
fn case_59_memory_comes_back_after_users_that_were_seen_once() {
    let (baseline, after) = example::measure(60_000).unwrap();
    assert!(after <= baseline + baseline / 10, "{baseline} bytes before, {after} after");
}
