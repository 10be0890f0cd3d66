//! Flash log: a redo write goes to disk and to flash, and completes with the first copy that is safe.
//!
//! The flash copy is needed until the disk copy is complete; then its space on the module is free. Only the amount of
//! used space is modelled: when the disk completes copies out of order, no holes are left on the module. Modules are
//! used in rotation; a full one is skipped. A write that cannot be raced goes to disk only and is counted under its
//! reason. All counters change when a copy completes, so that at every instant writes = disk first + flash first.

use super::ask::Ask;
use super::counts::Skip;
use super::log_space::Race;
use super::parameters::FlashLogParameters;
use super::state::{Op, State, Then};
use super::storage_cell::StorageCell;
use crate::device::{Done, Request};

impl StorageCell {
    /// Creates or drops the flash log for redo writes that arrive from now on; writes under way finish unchanged.
    pub fn set_flash_log(&self, exists: bool) {
        self.state.borrow_mut().log.exists = exists;
    }

    /// Returns true if there is a flash log.
    pub fn has_flash_log(&self) -> bool {
        self.state.borrow().log.exists
    }

    /// Returns the size of the flash log and the part that is not on disk yet [bytes].
    pub fn flash_log_bytes(&self) -> (u64, u64) {
        let log = &self.state.borrow().log;
        (log.bytes(), log.used())
    }

    /// Returns the reason why a redo write cannot be raced, if such a reason is known when the write arrives.
    pub(super) fn may_not_race(state: &State, ask: &Ask) -> Option<Skip> {
        let slice = &state.slices[usize::from(ask.group)];
        let directive = &state.directives[usize::from(ask.label.database)];
        if slice.on_flash {
            Some(Skip::LogOnFlash)
        } else if !slice.flash_log {
            Some(Skip::DisabledGrid)
        } else if !directive.flash_log {
            Some(Skip::Plan)
        } else if state.log.used_bytes.is_empty() {
            Some(Skip::NoFlash)
        } else if ask.request.bytes > state.log.room_bytes {
            Some(Skip::Large)
        } else {
            None
        }
    }

    pub(super) fn write_redo(&self, state: &mut State, op: u64, ask: Ask) {
        if !state.log.exists {
            self.io(state, ask, Then::Part(op));
            return;
        }
        let began_ns = self.sim.now_ns();
        let FlashLogParameters { header_bytes, page_bytes, .. } = self.log_parameters;
        let flash_bytes = (ask.request.bytes + header_bytes).next_multiple_of(page_bytes.max(1));
        let mut skip = Self::may_not_race(state, &ask);
        let mut place = None;
        if skip.is_none() {
            place = state.log.place(flash_bytes);
            let why = if flash_bytes > state.log.room_bytes { Skip::Large } else { Skip::Busy };
            skip = place.is_none().then_some(why);
        }
        let (module, at) = place.unwrap_or_default();
        let race = Race { began_ns, module: module as u16, flash_bytes, disk_ns: None, flash_ns: None, skip };
        let Some(open) = state.ops.get_mut(op) else { return };
        open.race = Some(race);
        if skip.is_some() {
            self.io(state, ask, Then::Unraced(op));
            return;
        }
        self.io(state, ask, Then::DiskCopy(op));
        let copy = Ask {
            unit: (self.disks + module) as u16,
            group: Ask::NO_GROUP,
            request: Request { offset_bytes: at, bytes: flash_bytes, ..ask.request },
            ..ask
        };
        self.io(state, copy, Then::FlashCopy(op));
    }

    /// Handles a completed copy; returns the observer to notify if this copy is the first.
    pub(super) fn copy_done(&self, state: &mut State, op: u64, flash: bool) -> Option<Done> {
        let now = self.sim.now_ns();
        let open = state.ops.get_mut(op)?;
        let (arrived_ns, ask) = (open.arrived_ns, open.ask);
        let race = open.race.as_mut()?;
        let elapsed_ns = now - race.began_ns;
        if flash {
            race.flash_ns = Some(elapsed_ns);
        } else {
            race.disk_ns = Some(elapsed_ns);
        }
        let (counts, race) = (&mut state.log.counts, *race);
        if flash {
            counts.flash_bytes += race.flash_bytes;
        } else {
            counts.disk_bytes += ask.request.bytes;
            state.log.used_bytes[usize::from(race.module)] -= race.flash_bytes;
        }
        if let (Some(disk_ns), Some(flash_ns)) = (race.disk_ns, race.flash_ns) {
            let outlier_ns = state.log.outlier_ns;
            match (disk_ns > outlier_ns, flash_ns > outlier_ns) {
                (true, false) => counts.prevented += 1,
                (false, true) => counts.flash_only += 1,
                (true, true) => counts.actual += 1,
                (false, false) => {}
            }
            state.ops.remove(op);
            return None;
        }
        if flash {
            counts.flash_first += 1;
        } else {
            counts.disk_first += 1;
        }
        counts.race_ns += elapsed_ns;
        counts.request_ns += elapsed_ns;
        state.by_database[usize::from(ask.label.database)].log.add(ask.request.bytes);
        let done = open.done.take();
        self.left(state, arrived_ns);
        done
    }

    /// Handles the completion of a redo write that was not raced.
    pub(super) fn unraced_done(&self, state: &mut State, op: u64) -> Option<Done> {
        let Some(&mut Op { race: Some(race), .. }) = state.ops.get_mut(op) else { return None };
        let elapsed_ns = self.sim.now_ns() - race.began_ns;
        let counts = &mut state.log.counts;
        if let Some(skip) = race.skip {
            counts.skips[skip as usize] += 1;
        }
        counts.skip_outliers += u64::from(elapsed_ns > state.log.outlier_ns);
        counts.request_ns += elapsed_ns;
        self.finish(state, op)
    }
}
