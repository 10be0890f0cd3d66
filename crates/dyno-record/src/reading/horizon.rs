//! Horizon of a backend: the oldest transaction that vacuum has to respect because of it.
//!
//! It is the older of two: the oldest transaction that was running when the backend took its snapshot (`xmin`), and the
//! backend's own transaction (`xid`). Vacuum keeps the rows that died since then.
//!
//! In an element of the process array, the fields from the latch's owner on follow one another: owner, own transaction,
//! `xmin`, number of the virtual transaction (before version 17), process id, place in the dense arrays. The distance
//! of the two process ids shows that this is so in the running server. Each horizon is checked once more: the dense
//! array of transactions must have the backend's own transaction at that place.

use super::arrays::{Array, Arrays, Sample};
use super::memory::Memory;

/// First version without a virtual transaction's number between `xmin` and the process id.
const PACKED_FROM: u32 = 17;
/// Offsets in the header that `ProcGlobal` points to: dense arrays of transactions and of flags.
const XIDS_AT: u64 = 8;
const FLAGS_AT: u64 = 24;
/// Flags of a backend that vacuum ignores: it runs a vacuum, or decodes the WAL for a slot.
const IGNORED: u8 = 0x02 | 0x10;
/// Offset of the next transaction's number in the server's transaction counters.
const NEXT_AT: u64 = 8;
/// Smallest number of a normal transaction.
const FIRST: u32 = 3;

/// Where the server's memory has the horizons of its backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizons {
    procs: Array,
    /// Offsets in an element of the process array.
    xid: u64,
    place: u64,
    /// Addresses of the dense arrays, and of the next transaction's number.
    xids: u64,
    flags: u64,
    next: u64,
}

/// Returns the older of two transactions, of which either may be missing (0).
pub fn oldest(xid: u32, xmin: u32) -> Option<u32> {
    let known = [xid, xmin].into_iter().filter(|one| *one >= FIRST);
    known.reduce(|a, b| if precedes(b, a) { b } else { a })
}

/// Returns true if transaction `a` began before `b`; numbers wrap around.
pub fn precedes(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Horizons {
    /// Finds the horizons; `counters` is the address of the server's transaction counters. `None` if anything does not
    /// fit.
    pub fn find(
        memory: &dyn Memory,
        (header, counters): (u64, u64),
        arrays: &Arrays,
        samples: &[Sample],
        major: u32,
    ) -> Option<Self> {
        let own_pid = arrays.pid + if major < PACKED_FROM { 16 } else { 12 };
        let is_pid = |one: &Sample| memory.u32(one.proc + own_pid) == Some(one.pid as u32);
        let made = Self {
            procs: arrays.procs,
            xid: arrays.pid + 4,
            place: own_pid + 4,
            xids: memory.u64(header + XIDS_AT)?,
            flags: memory.u64(header + FLAGS_AT)?,
            next: counters + NEXT_AT,
        };
        let is_dense = [made.xids, made.flags].iter().all(|addr| memory.u32(addr & !3).is_some());
        (!samples.is_empty() && samples.iter().all(is_pid) && is_dense && made.next(memory)? >= FIRST).then_some(made)
    }

    /// Returns the addresses of an element's own transaction and of its `xmin`.
    pub fn at(&self, element: usize) -> [u64; 2] {
        let xid = self.procs.at(element) + self.xid;
        [xid, xid + 4]
    }

    /// Returns the horizon of an element of the process array; `None` if it has none, or vacuum ignores it.
    pub fn read(&self, memory: &dyn Memory, element: usize) -> Option<u32> {
        let (proc, [xid_at, xmin_at]) = (self.procs.at(element), self.at(element));
        let place = memory.u32(proc + self.place).filter(|place| (*place as usize) < self.procs.count)?;
        let (xid, xmin) = (memory.u32(xid_at)?, memory.u32(xmin_at)?);
        let mut flags = [0];
        memory.read(self.flags + u64::from(place), &mut flags)?;
        let is_same = memory.u32(self.xids + 4 * u64::from(place))? == xid && memory.u32(proc + self.place)? == place;
        oldest(xid, xmin).filter(|_| is_same && flags[0] & IGNORED == 0)
    }

    /// Returns the number of transactions begun since a horizon; `None` if it is not in the past.
    pub fn age(&self, memory: &dyn Memory, horizon: u32) -> Option<u32> {
        let age = self.next(memory)?.wrapping_sub(horizon);
        (age as i32 >= 0).then_some(age)
    }

    /// Returns the number of the next transaction, without its epoch.
    fn next(&self, memory: &dyn Memory) -> Option<u32> {
        memory.u32(self.next)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::reading::arrays::Published;

    const HEADER: u64 = 64;
    const COUNTERS: u64 = 128;
    const XIDS: u64 = 4000;
    const FLAGS: u64 = 5000;
    const PROC: u64 = 1000;

    #[derive(Default)]
    struct Fake(HashMap<u64, u8>);

    impl Memory for Fake {
        fn read(&self, addr: u64, into: &mut [u8]) -> Option<()> {
            for (at, byte) in into.iter_mut().enumerate() {
                *byte = self.0.get(&(addr + at as u64)).copied().unwrap_or(0);
            }
            Some(())
        }
    }

    impl Fake {
        fn put(&mut self, addr: u64, bytes: &[u8]) {
            self.0.extend(bytes.iter().enumerate().map(|(at, byte)| (addr + at as u64, *byte)));
        }

        fn put_u32(&mut self, addr: u64, value: u32) {
            self.put(addr, &value.to_le_bytes());
        }
    }

    /// Returns a server of a version with one backend that sees changes up to transaction 700, and the place of its own
    /// transaction.
    fn server(major: u32) -> (Fake, Arrays, Vec<Sample>, u64) {
        let procs = Array { first: PROC, bytes: 800, count: 4 };
        let published = Published { query_id: 0x1a8, text: 0xf8 };
        let arrays = Arrays { procs, pid: 0x38, word: 712, entries: procs, state: 0xe8, published, text_bytes: 1024 };
        let proc = procs.at(1);
        let own = proc + 0x3c;
        let mut memory = Fake::default();
        memory.put(HEADER + XIDS_AT, &XIDS.to_le_bytes());
        memory.put(HEADER + FLAGS_AT, &FLAGS.to_le_bytes());
        memory.put_u32(COUNTERS + NEXT_AT, 760);
        memory.put_u32(proc + 0x38, 77);
        memory.put_u32(own, 705);
        memory.put_u32(own + 4, 700);
        let pid = if major < 17 { own + 12 } else { own + 8 };
        memory.put_u32(pid, 77);
        memory.put_u32(pid + 4, 2);
        memory.put_u32(XIDS + 8, 705);
        let sample = Sample { pid: 77, proc, word: proc + 712, entry: None };
        (memory, arrays, vec![sample], own)
    }

    fn find(major: u32, as_major: u32) -> Option<(Fake, Horizons, u64)> {
        let (memory, arrays, samples, own) = server(major);
        let found = Horizons::find(&memory, (HEADER, COUNTERS), &arrays, &samples, as_major)?;
        Some((memory, found, own))
    }

    #[test]
    fn the_horizon_is_behind_the_own_transaction_in_all_versions() {
        for major in [14, 16, 17, 18] {
            let (memory, found, own) = find(major, major).expect("it fits");
            assert_eq!(found.at(1), [own, own + 4]);
            assert_eq!(found.read(&memory, 1), Some(700));
            assert_eq!(found.age(&memory, 700), Some(60));
        }
    }

    #[test]
    fn fields_in_the_order_of_another_version_are_refused() {
        assert!(find(16, 17).is_none());
        assert!(find(17, 16).is_none());
    }

    #[test]
    fn a_horizon_is_the_older_of_two_and_none_if_vacuum_ignores_it_or_it_changes() {
        let (mut memory, found, own) = find(15, 15).expect("it fits");
        memory.put_u32(own + 4, 0);
        assert_eq!(found.read(&memory, 1), Some(705), "its own transaction, without a snapshot");
        memory.put_u32(own + 4, 701);
        assert_eq!(found.read(&memory, 1), Some(701));
        memory.put(FLAGS + 2, &[0x02]);
        assert_eq!(found.read(&memory, 1), None, "it runs a vacuum");
        memory.put(FLAGS + 2, &[0x01]);
        assert_eq!(found.read(&memory, 1), Some(701));
        memory.put_u32(own, 706);
        assert_eq!(found.read(&memory, 1), None, "the dense array has another transaction there");
        assert_eq!(found.read(&memory, 0), None, "no backend");
    }

    #[test]
    fn numbers_of_transactions_wrap_around() {
        let (mut memory, found, _) = find(18, 18).expect("it fits");
        memory.put_u32(COUNTERS + NEXT_AT, 10);
        assert_eq!(found.age(&memory, u32::MAX - 4), Some(15));
        assert_eq!(found.age(&memory, 11), None, "it is in the future");
        assert!(precedes(u32::MAX - 4, 5) && !precedes(5, u32::MAX - 4) && !precedes(5, 5));
    }
}
