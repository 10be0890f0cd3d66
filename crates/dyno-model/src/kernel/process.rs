//! Processes of a run: a slab of futures. A process is identified by its place and how often the place was used before,
//! so that a late wake-up never reaches another process.
//!
//! A place keeps the memory of the process that ended there, for the next process of the same kind. So a model with a
//! process for each customer allocates memory only for the largest number of customers present at once.

use std::any::Any;
use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

/// Identifier of a process, meaningful only within its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId {
    place: u32,
    used: u32,
}

impl ProcessId {
    /// Identifier that stands for no process.
    pub const NONE: Self = Self { place: u32::MAX, used: u32::MAX };

    /// Returns the identifier as one number, for the hash of a run.
    #[inline]
    pub fn bits(self) -> u64 {
        u64::from(self.used) << 32 | u64::from(self.place)
    }

    /// Returns the identifier from a number that [`ProcessId::bits`] returned.
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Self { place: bits as u32, used: (bits >> 32) as u32 }
    }
}

/// Future that a process executes, or the empty memory of one that has ended.
pub trait Task: Any {
    /// Continues the future up to its next wait; returns true if the future has ended and has been dropped.
    fn proceed(&mut self) -> bool;
}

/// Memory for futures of one type, one after the other.
///
/// A new future is moved into it where its type is known, so it is copied once: a copy made just after its fields were
/// written has to wait for the processor to store them.
struct Memory<F>(Pin<Box<Option<F>>>);

impl<F: Future<Output = ()> + 'static> Task for Memory<F> {
    #[inline]
    fn proceed(&mut self) -> bool {
        let Some(work) = self.0.as_mut().as_pin_mut() else { return true };
        let ended = work.poll(&mut Context::from_waker(Waker::noop())).is_ready();
        if ended {
            self.0.set(None);
        }
        ended
    }
}

/// Memory of a process.
pub type Work = Box<dyn Task>;

/// Returns memory with a future in it.
#[allow(clippy::inline_always)] // otherwise the future is copied once more
#[inline(always)]
fn memory_for<F: Future<Output = ()> + 'static>(work: F) -> Work {
    Box::new(Memory(Box::pin(Some(work))))
}

struct Slot {
    work: Option<Work>,
    used: u32,
    daemon: bool,
    live: bool,
    name: Cow<'static, str>,
    number: u64,
    /// Place where the process stopped when it was last polled.
    waits_for: u32,
    /// Time at which the process stopped there [ns].
    since_ns: u64,
}

/// All processes of a run.
#[derive(Default)]
pub struct Processes {
    slots: Vec<Slot>,
    free: Vec<u32>,
    spawned: u64,
}

/// A waiting process: name with number, place, start of the wait.
pub struct Stopped {
    pub name: String,
    pub waits_for: u32,
    pub since_ns: u64,
}

impl Processes {
    #[inline]
    pub fn add<F>(&mut self, name: Cow<'static, str>, daemon: bool, work: F) -> ProcessId
    where
        F: Future<Output = ()> + 'static,
    {
        self.spawned += 1;
        let number = self.spawned;
        if let Some(place) = self.free.pop() {
            let slot = &mut self.slots[place as usize];
            let kept = slot.work.as_deref_mut().and_then(|kept| (kept as &mut dyn Any).downcast_mut::<Memory<F>>());
            match kept {
                Some(kept) => kept.0.set(Some(work)),
                None => slot.work = Some(memory_for(work)),
            }
            (slot.name, slot.number) = (name, number);
            (slot.daemon, slot.live) = (daemon, true);
            return ProcessId { place, used: slot.used };
        }
        let place = self.slots.len() as u32;
        let work = Some(memory_for(work));
        let (used, live, waits_for, since_ns) = (0, true, 0, 0);
        self.slots.push(Slot { work, used, daemon, live, name, number, waits_for, since_ns });
        ProcessId { place, used }
    }

    /// Removes the memory of a process, to continue it while nothing is borrowed; `None` if the process has ended.
    #[inline]
    pub fn take(&mut self, id: ProcessId) -> Option<Work> {
        let slot = self.slots.get_mut(id.place as usize)?;
        if slot.used == id.used { slot.work.take() } else { None }
    }

    /// Puts back the memory of a waiting process, which [`Processes::take`] removed.
    #[inline]
    pub fn put_back(&mut self, id: ProcessId, work: Work, waits_for: u32, now_ns: u64) {
        let slot = &mut self.slots[id.place as usize];
        slot.work = Some(work);
        (slot.waits_for, slot.since_ns) = (waits_for, now_ns);
    }

    /// Puts back the memory of an ended process, which [`Processes::take`] removed; returns true if it was a daemon.
    #[inline]
    pub fn end(&mut self, id: ProcessId, work: Work) -> bool {
        let slot = &mut self.slots[id.place as usize];
        slot.work = Some(work);
        slot.used = slot.used.wrapping_add(1);
        slot.live = false;
        self.free.push(id.place);
        slot.daemon
    }

    /// Returns the ordinary processes that have not ended, in order of their numbers.
    pub fn stopped(&self) -> Vec<Stopped> {
        let mut live: Vec<&Slot> = self.slots.iter().filter(|slot| slot.live && !slot.daemon).collect();
        live.sort_by_key(|slot| slot.number);
        live.into_iter()
            .map(|slot| Stopped {
                name: format!("{} #{}", slot.name, slot.number),
                waits_for: slot.waits_for,
                since_ns: slot.since_ns,
            })
            .collect()
    }

    /// Removes all futures, so that they can be dropped while nothing is borrowed.
    pub fn drain(&mut self) -> Vec<Work> {
        self.free.clear();
        self.slots.drain(..).filter_map(|slot| slot.work).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// Runs a process to its end; returns the address of its memory.
    fn finish(processes: &mut Processes, id: ProcessId) -> *const () {
        let mut work = processes.take(id).unwrap();
        let address = std::ptr::from_ref(&*work).cast();
        assert!(work.proceed());
        processes.end(id, work);
        address
    }

    #[test]
    fn the_next_process_of_a_kind_has_the_memory_of_the_one_that_ended_there() {
        let sum = Rc::new(Cell::new(0));
        let of_kind = |value: u64| {
            let sum = Rc::clone(&sum);
            async move { sum.set(sum.get() + value) }
        };
        let mut processes = Processes::default();
        let first = processes.add("one".into(), false, of_kind(1));
        let memory = finish(&mut processes, first);
        assert_eq!(Rc::strong_count(&sum), 1);
        let second = processes.add("two".into(), false, of_kind(10));
        assert!(processes.take(first).is_none());
        assert_eq!(finish(&mut processes, second), memory);
        let other = Rc::clone(&sum);
        let third = processes.add("three".into(), true, async move { other.set(other.get() + 100) });
        finish(&mut processes, third);
        assert_eq!((sum.get(), Rc::strong_count(&sum)), (111, 1));
    }
}
