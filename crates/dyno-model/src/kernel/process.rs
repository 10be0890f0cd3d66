//! Processes of a run: a slab of futures. A process is identified by its place and how often the place was used before,
//! so that a late wake-up never reaches another process.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;

/// Identifier of a process, meaningful only within its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId {
    place: u32,
    used: u32,
}

impl ProcessId {
    /// Stands for no process.
    pub const NONE: Self = Self { place: u32::MAX, used: u32::MAX };

    /// Returns it as one number, for the hash of a run.
    #[inline]
    pub fn bits(self) -> u64 {
        u64::from(self.used) << 32 | u64::from(self.place)
    }
}

/// Future that a process executes.
pub type Work = Pin<Box<dyn Future<Output = ()>>>;

struct Slot {
    work: Option<Work>,
    used: u32,
    daemon: bool,
    live: bool,
    name: Cow<'static, str>,
    number: u64,
    /// Where it stopped when it was last polled: a place of the run; then the time.
    waits_for: u32,
    since_ns: u64,
}

/// All processes of a run.
#[derive(Default)]
pub struct Processes {
    slots: Vec<Slot>,
    free: Vec<u32>,
    spawned: u64,
    /// Number of living processes that a run must wait for.
    ordinary: usize,
}

/// A waiting process: name with number, place, start of the wait.
pub struct Stopped {
    pub name: String,
    pub waits_for: u32,
    pub since_ns: u64,
}

impl Processes {
    pub fn ordinary(&self) -> usize {
        self.ordinary
    }

    pub fn add(&mut self, name: Cow<'static, str>, daemon: bool, work: Work) -> ProcessId {
        self.spawned += 1;
        self.ordinary += usize::from(!daemon);
        let number = self.spawned;
        if let Some(place) = self.free.pop() {
            let slot = &mut self.slots[place as usize];
            let used = slot.used;
            (slot.work, slot.name, slot.number) = (Some(work), name, number);
            (slot.daemon, slot.live) = (daemon, true);
            return ProcessId { place, used };
        }
        let place = self.slots.len() as u32;
        let work = Some(work);
        let (used, live, waits_for, since_ns) = (0, true, 0, 0);
        self.slots.push(Slot { work, used, daemon, live, name, number, waits_for, since_ns });
        ProcessId { place, used }
    }

    /// Removes the future, to be polled while nothing is borrowed; `None` if the process has ended.
    #[inline]
    pub fn take(&mut self, id: ProcessId) -> Option<Work> {
        let slot = self.slots.get_mut(id.place as usize)?;
        if slot.used == id.used { slot.work.take() } else { None }
    }

    #[inline]
    pub fn put_back(&mut self, id: ProcessId, work: Work, waits_for: u32, now_ns: u64) {
        let slot = &mut self.slots[id.place as usize];
        slot.work = Some(work);
        (slot.waits_for, slot.since_ns) = (waits_for, now_ns);
    }

    pub fn end(&mut self, id: ProcessId) {
        let slot = &mut self.slots[id.place as usize];
        slot.used = slot.used.wrapping_add(1);
        slot.live = false;
        self.ordinary -= usize::from(!slot.daemon);
        self.free.push(id.place);
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

    /// Removes all futures, to be dropped while nothing is borrowed.
    pub fn drain(&mut self) -> Vec<Work> {
        self.free.clear();
        self.ordinary = 0;
        self.slots.drain(..).filter_map(|slot| slot.work).collect()
    }
}
