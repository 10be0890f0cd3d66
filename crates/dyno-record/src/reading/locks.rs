//! Holder of the lock that a process waits for, from the server's lock table.
//!
//! A waiting process points to its lock and to its own request for the lock. The request points back to both, and the
//! kind of lock is also in the number of the wait event. So the offset of these pointers can be found at the first wait
//! for a lock. The same checks detect that the table changed during a reading; no holder is named then.

use super::arrays::Arrays;
use super::memory::Memory;

/// Class `Lock` in the number of an event.
const LOCK: u32 = 0x03;
/// Offsets in `LOCK`: kind of the locked object, first request.
const KIND_AT: u64 = 14;
const REQUESTS_AT: u64 = 24;
/// Offsets in `PROCLOCK`: process, leader of its parallel group, held modes, link to the next request.
const PROCESS_AT: u64 = 8;
const GROUP_AT: u64 = 16;
const HELD_AT: u64 = 24;
const LINK_AT: u64 = 32;
/// Maximum number of requests for one lock that are examined.
const REQUESTS_MOST: usize = 64;
/// Modes that exclude each mode, as bits; modes are numbered from 1.
const CONFLICTS: [u32; 9] = [
    0,
    1 << 8,
    1 << 7 | 1 << 8,
    1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
    1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
];

/// Returns true if the event is a wait for a heavyweight lock.
pub fn is_lock(event: u32) -> bool {
    event >> 24 == LOCK
}

/// Reader of the lock table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Locks {
    /// Offset, in a `PGPROC`, of the pointer to the lock for which the process waits; `None` until it is found.
    place: Option<u64>,
}

struct Request {
    lock: u64,
    own: u64,
    mode: usize,
}

impl Locks {
    /// Returns the process that holds the lock for which the process at `proc` waits; `None` if it could not be read
    /// reliably.
    ///
    /// Also `None` if no process holds the lock in a conflicting mode: the process then waits behind another request.
    pub fn holder(&mut self, memory: &dyn Memory, arrays: &Arrays, proc: u64, event: u32) -> Option<i32> {
        let (place, asked) = self.request(memory, arrays, proc, event)?;
        let holder = excluding(memory, arrays, &asked)?;
        let pid = memory.u32(holder + arrays.pid).filter(|pid| *pid != 0)? as i32;
        still(memory, arrays, (proc, place, event), &asked).then_some(pid)
    }

    /// Returns the object of the lock for which a process waits, which distinguishes two successive waits.
    pub fn target(&mut self, memory: &dyn Memory, arrays: &Arrays, proc: u64, event: u32) -> Option<[u64; 2]> {
        let (place, asked) = self.request(memory, arrays, proc, event)?;
        let target = [memory.u64(asked.lock)?, memory.u64(asked.lock + 8)?];
        still(memory, arrays, (proc, place, event), &asked).then_some(target)
    }

    /// Returns the request that a process waits for, and the offset of the pointer to its lock.
    fn request(&mut self, memory: &dyn Memory, arrays: &Arrays, proc: u64, event: u32) -> Option<(u64, Request)> {
        let place = match self.place {
            Some(place) => place,
            None => (arrays.pid.next_multiple_of(8)..arrays.procs.bytes - 24)
                .step_by(8)
                .find(|place| request(memory, proc, *place, event).is_some())?,
        };
        let asked = request(memory, proc, place, event)?;
        self.place = Some(place);
        Some((place, asked))
    }
}

/// Returns true if the process still waits for that event because of that lock request.
fn still(memory: &dyn Memory, arrays: &Arrays, (proc, place, event): (u64, u64, u32), asked: &Request) -> bool {
    memory.u32(proc + arrays.word) == Some(event) && memory.u64(proc + place) == Some(asked.lock)
}

/// Returns the request for which a process waits, provided that `place` points to it: all pointers and the kind must
/// agree.
fn request(memory: &dyn Memory, proc: u64, place: u64, event: u32) -> Option<Request> {
    let lock = memory.u64(proc + place)?;
    let own = memory.u64(proc + place + 8)?;
    let mut kind = [0];
    memory.read(lock.checked_add(KIND_AT)?, &mut kind)?;
    let agrees = u32::from(kind[0]) == event & 0xff
        && memory.u64(own)? == lock
        && memory.u64(own.checked_add(PROCESS_AT)?)? == proc;
    let mode = memory.u32(proc + place + 16)? as usize;
    (agrees && (1..CONFLICTS.len()).contains(&mode)).then_some(Request { lock, own, mode })
}

/// Returns the process of the first request that holds the lock in a conflicting mode and is not in the same group.
fn excluding(memory: &dyn Memory, arrays: &Arrays, asked: &Request) -> Option<u64> {
    let group = memory.u64(asked.own + GROUP_AT)?;
    let head = asked.lock + REQUESTS_AT;
    let mut link = memory.u64(head + 8)?;
    for _ in 0..REQUESTS_MOST {
        if link == head {
            return None;
        }
        let one = link.checked_sub(LINK_AT)?;
        if memory.u64(one)? != asked.lock {
            return None;
        }
        let excludes = memory.u32(one + HELD_AT)? & CONFLICTS[asked.mode] != 0;
        if excludes && one != asked.own && memory.u64(one + GROUP_AT)? != group {
            let process = memory.u64(one + PROCESS_AT)?;
            return arrays.procs.number(process).map(|_| process);
        }
        link = memory.u64(link + 8)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::reading::arrays::{Array, Published};

    const PROC: u64 = 1000;
    const OTHER: u64 = 2000;
    const TRANSACTION: u32 = LOCK << 24 | 4;

    #[derive(Default)]
    struct Fake(HashMap<u64, u64>);

    impl Memory for Fake {
        fn read(&self, addr: u64, into: &mut [u8]) -> Option<()> {
            let word = self.0.get(&(addr & !7)).copied().unwrap_or(0).to_le_bytes();
            let from = (addr & 7) as usize;
            into.copy_from_slice(word.get(from..from + into.len())?);
            Some(())
        }
    }

    fn arrays() -> Arrays {
        let procs = Array { first: PROC, bytes: 1000, count: 2 };
        let published = Published { query_id: 0x1a8, text: 0xf8 };
        Arrays { procs, pid: 64, word: 712, entries: procs, state: 0xe8, published, text_bytes: 1024 }
    }

    /// Returns a memory in which one process waits for a lock, and another process holds it in these modes.
    fn waiting(held: u64) -> Fake {
        let (lock, own, others) = (8000, 8800, 8200);
        let words = [
            (PROC + 712, u64::from(TRANSACTION)),
            (PROC + 128, lock),
            (PROC + 136, own),
            (PROC + 144, 5),
            (OTHER + 64, 77),
            (lock + 8, 4 << 48),
            (lock + REQUESTS_AT + 8, others + LINK_AT),
            (others, lock),
            (others + PROCESS_AT, OTHER),
            (others + GROUP_AT, OTHER),
            (others + HELD_AT, held),
            (others + LINK_AT + 8, own + LINK_AT),
            (own, lock),
            (own + PROCESS_AT, PROC),
            (own + GROUP_AT, PROC),
            (own + LINK_AT + 8, lock + REQUESTS_AT),
        ];
        Fake(words.into_iter().collect())
    }

    fn holder(memory: &Fake) -> Option<i32> {
        Locks::default().holder(memory, &arrays(), PROC, TRANSACTION)
    }

    #[test]
    fn the_holder_is_who_holds_the_lock_in_a_mode_that_excludes_the_waiters() {
        assert_eq!(holder(&waiting(1 << 7)), Some(77));
        assert_eq!(holder(&waiting(1 << 5)), None, "a shared lock does not exclude a shared one");
        assert_eq!(holder(&waiting(0)), None, "it waits behind another request");
    }

    #[test]
    fn two_waits_in_succession_differ_by_what_the_lock_is_for() {
        let target = |memory: &Fake| Locks::default().target(memory, &arrays(), PROC, TRANSACTION);
        let mut memory = waiting(1 << 7);
        let one = target(&memory);
        assert!(one.is_some());
        memory.0.insert(8000, 741);
        assert_ne!(target(&memory), one, "the transaction is another");
        memory.0.insert(PROC + 712, 0);
        assert_eq!(target(&memory), None, "it does not wait any more");
    }

    #[test]
    fn what_does_not_point_back_or_is_of_another_kind_is_no_lock() {
        let mut memory = waiting(1 << 7);
        memory.0.insert(8800 + PROCESS_AT, OTHER);
        assert_eq!(holder(&memory), None);
        let memory = waiting(1 << 7);
        assert_eq!(Locks::default().holder(&memory, &arrays(), PROC, LOCK << 24), None, "Lock:relation");
    }

    #[test]
    fn a_circle_in_a_table_that_changes_is_left() {
        let mut memory = waiting(0);
        memory.0.insert(8200 + LINK_AT + 8, 8200 + LINK_AT);
        assert_eq!(holder(&memory), None);
    }
}
