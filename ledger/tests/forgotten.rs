//! Reservations that are forgotten leave nothing. The only test of its process, since it counts what the whole of it
//! has allocated.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../examples/forgotten_reservations.rs"]
mod example;

#[test]
fn the_heap_does_not_grow_over_waves_of_reservations_that_are_forgotten() {
    let (before, after) = example::measure(100_000, 20_000).unwrap();
    assert!(after <= before + before / 10, "{before} bytes before, {after} after");
}
