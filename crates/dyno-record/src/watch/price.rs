//! Cost of a watchpoint on this machine, measured on a word of this process.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::perf::{self, Event, Ring, Scope, Source};

use super::layout::STACK;

/// Number of stores per repetition; the cheapest repetition counts.
const STORES: u64 = 250;

/// CPU time that a note of a watchpoint costs [ns].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Cost of an event that records the registers [ns].
    pub wait_ns: u64,
    /// Cost of an event that records the registers and a part of the stack [ns].
    pub call_ns: u64,
}

fn cost_ns(stack: u32) -> io::Result<u64> {
    let word = Box::new(AtomicU64::new(0));
    let place = std::ptr::from_ref::<AtomicU64>(&word) as u64;
    let event = Event::open(&Source::Watch { address: place, bytes: 8, stack }, Scope { pid: 0, cpu: -1 }, None)?;
    let mut ring = Ring::of(&event, 16).or_else(|_| Ring::of(&event, 2))?;
    event.enable()?;
    let store = || (0..STORES).for_each(|number| word.store(number, Ordering::Relaxed));
    Ok(perf::cheapest_ns(store, || ring.each(&mut |_, _, _| {})) / STORES)
}

/// Measures the cost of a note with and without a part of the stack.
///
/// # Errors
/// The kernel allows no watchpoint even on this process.
pub fn measure() -> io::Result<Price> {
    Ok(Price { wait_ns: cost_ns(0)?, call_ns: cost_ns(STACK)? })
}
