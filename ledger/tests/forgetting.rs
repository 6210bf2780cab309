//! Field case 59 with fewer users: what was seen once leaves the heap as it was. The only test of its process, since it
//! counts what the whole of it has allocated.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../examples/forgetting_memory.rs"]
mod example;

#[test]
fn case_59_memory_comes_back_after_users_that_were_seen_once() {
    for end in [example::End::Release, example::End::Settle] {
        let (before, after) = example::measure(60_000, end).unwrap();
        assert!(after <= before + before / 10, "{end:?}: {before} bytes before, {after} after");
    }
}
