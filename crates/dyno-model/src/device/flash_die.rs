//! One die of a flash card: its queues, its current operation, and an operation that is interrupted while reads pass.
//!
//! ```text
//!   reads  --> up to `planes` pages of different planes at once --> cells --> bus --> link
//!   writes --> up to `planes` pages at once --> bus --> cells
//!                            a read may interrupt it: [held] --> resumed for the time it still needs
//! ```
//!
//! An operation lets reads of at most `suspend_reads` pages pass, however many arrive, and so does a waiting write
//! before it begins. So a write takes at most the time of its program, plus the time of these reads and of as many
//! interruptions. Which plane a page is on follows from its number; programs may use any planes, because the mapping
//! allows it.

use std::collections::VecDeque;

use super::flash_parameters::FlashParameters;
use super::ftl::{Ftl, Step};
use crate::kernel::sample::whole_ns;

/// Work on a page for a request.
#[derive(Clone, Copy)]
pub(super) struct PageOp {
    pub lpn: u64,
    pub partial: bool,
    /// Request to acknowledge when the operation is done; `None` if only the buffer waits for the operation.
    pub request: Option<u64>,
    /// True if the operation frees a page of the buffer when it is done.
    pub buffered: bool,
    /// True if the mapping of the page must be read first.
    pub misses: bool,
    pub arrived_ns: u64,
}

/// Kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Pages are read from the cells.
    Read,
    /// Pages that were read are transferred over the bus.
    Send,
    /// Pages are programmed.
    Program,
    /// The die's own work: a step of collection, or moving pages out of the fast cells.
    Own,
}

/// Operation of a die.
pub(super) struct Operation {
    pub work: Work,
    /// Pages of requests; empty for the die's own work.
    pub pages: Vec<PageOp>,
    /// Time at which the operation began [ns]; used only for the die's own work.
    pub arrived_ns: u64,
    /// Time at which the operation ends if nothing interrupts it [ns].
    pub due_ns: u64,
    /// Number of pages that may still be read before the operation ends.
    passes: u64,
    /// True if the operation was interrupted and now continues.
    pub resumed: bool,
}

impl Operation {
    fn new(work: Work, pages: Vec<PageOp>, now_ns: u64, ns: u64, times: &Times) -> Self {
        let (due_ns, passes) = (now_ns + ns, times.suspend_reads);
        Self { work, pages, arrived_ns: now_ns, due_ns, passes, resumed: false }
    }

    /// Begins the transfer of pages that were read; returns false if there is nothing to transfer, or if buses are not
    /// modelled.
    pub fn send(&mut self, now_ns: u64, times: &Times, bus_free_ns: &mut u64) -> bool {
        if self.work != Work::Read || times.bus_ns == 0 {
            return false;
        }
        self.work = Work::Send;
        self.due_ns = now_ns + times.over(bus_free_ns, now_ns, self.pages.len());
        true
    }

    /// Returns the arrival times of the pages in the operation, or of the die's own work [ns].
    pub fn arrivals(&self) -> impl Iterator<Item = u64> {
        let own = (self.work == Work::Own).then_some(self.arrived_ns);
        self.pages.iter().map(|op| op.arrived_ns).chain(own)
    }
}

/// Times of a card in whole nanoseconds.
pub(super) struct Times {
    pub read_ns: u64,
    pub program_ns: u64,
    pub erase_ns: u64,
    pub firmware_ns: u64,
    /// Time to transfer a page on the bus of its channel [ns]; 0 if buses are not modelled.
    bus_ns: u64,
    suspend_ns: u64,
    slc_program_ns: u64,
    pub slc_idle_ns: u64,
    dies: u64,
    planes: u64,
    suspend_reads: u64,
    /// Number of pages that the fast cells of a die can hold.
    slc_pages: u64,
    idle_blocks: u32,
}

impl Times {
    /// Returns the times of a card whose dies collect while they have fewer than `idle_blocks` free blocks.
    pub fn new(parameters: &FlashParameters, idle_blocks: u32) -> Self {
        let ns = |us: f64| whole_ns(us * 1e3);
        let bus_us = parameters.page_bytes as f64 / parameters.channel_mb_s;
        Self {
            read_ns: ns(parameters.read_us),
            program_ns: ns(parameters.program_us),
            erase_ns: ns(parameters.erase_us),
            firmware_ns: ns(parameters.firmware_us),
            bus_ns: if parameters.channels == 0 { 0 } else { ns(bus_us) },
            suspend_ns: ns(parameters.suspend_us),
            slc_program_ns: ns(parameters.slc_program_us),
            slc_idle_ns: ns(parameters.slc_idle_ms * 1e3),
            dies: parameters.dies,
            planes: parameters.planes,
            suspend_reads: parameters.suspend_reads,
            slc_pages: (parameters.slc_mb << 20) / parameters.page_bytes / parameters.dies,
            idle_blocks,
        }
    }

    fn plane(&self, op: &PageOp) -> u64 {
        op.lpn / self.dies % self.planes
    }

    /// Returns the time from now until the pages have been transferred over the bus, which serves transfers in order
    /// [ns].
    fn over(&self, bus_free_ns: &mut u64, now_ns: u64, pages: usize) -> u64 {
        if self.bus_ns == 0 {
            return 0;
        }
        *bus_free_ns = (*bus_free_ns).max(now_ns) + self.bus_ns * pages as u64;
        *bus_free_ns - now_ns
    }
}

/// A die.
pub(super) struct Die {
    pub ftl: Ftl,
    pub reads: VecDeque<PageOp>,
    pub writes: VecDeque<PageOp>,
    pub now: Option<Operation>,
    /// Interrupted operation.
    held: Option<Operation>,
    /// Time that the interruption itself still takes [ns].
    stop_ns: u64,
    /// Number of pages in the fast cells.
    slc_used: u64,
    /// Time from which an idle die moves pages out of the fast cells [ns].
    fold_from_ns: Option<u64>,
    /// Number of pages read since the last program while writes waited.
    passed: u64,
    /// True if collection can free nothing until something is written or discarded.
    pub clean: bool,
    /// Empty list, kept for the next operation.
    spare: Vec<PageOp>,
}

impl Die {
    /// Returns an idle die.
    pub fn new(ftl: Ftl) -> Self {
        let (reads, writes) = (VecDeque::new(), VecDeque::new());
        Self {
            ftl,
            reads,
            writes,
            now: None,
            held: None,
            stop_ns: 0,
            slc_used: 0,
            fold_from_ns: None,
            passed: 0,
            clean: false,
            spare: Vec::new(),
        }
    }

    /// Keeps the list of a completed operation for reuse.
    pub fn recycle(&mut self, mut pages: Vec<PageOp>) {
        pages.clear();
        self.spare = pages;
    }

    /// Interrupts a program, a step of collection or a move, if reads wait and the operation may still let reads pass.
    pub fn interrupt(&mut self, now_ns: u64, times: &Times) {
        let can = |own: &Operation| matches!(own.work, Work::Program | Work::Own) && own.passes > 0;
        if self.reads.is_empty() || !self.now.as_ref().is_some_and(|own| can(own) && own.due_ns > now_ns) {
            return;
        }
        self.held = self.now.take();
        // From now on this is the time that is left.
        if let Some(held) = &mut self.held {
            held.due_ns -= now_ns;
        }
        self.stop_ns = times.suspend_ns;
    }

    /// Returns the operation that an idle die begins; `bus_free_ns` is the time at which the bus of its channel is
    /// free.
    pub fn begin(&mut self, now_ns: u64, times: &Times, bus_free_ns: &mut u64) -> Option<Operation> {
        if self.reads_first(times) {
            return Some(self.read(now_ns, times));
        }
        if let Some(held) = self.held.take() {
            let due_ns = now_ns + held.due_ns;
            return Some(Operation { due_ns, resumed: true, ..held });
        }
        if !self.writes.is_empty() && !self.ftl.must_collect() {
            return Some(self.program(now_ns, times, bus_free_ns));
        }
        let ns = self.collect(times).or_else(|| self.fold(now_ns, times))?;
        Some(Operation::new(Work::Own, Vec::new(), now_ns, ns, times))
    }

    /// Returns true if a read begins before the interrupted operation and before writes.
    fn reads_first(&self, times: &Times) -> bool {
        let waits = |passed| times.suspend_reads == 0 || self.writes.is_empty() || passed < times.suspend_reads;
        !self.reads.is_empty() && self.held.as_ref().map_or(waits(self.passed), |held| held.passes > 0)
    }

    /// Returns the time at which an idle die will empty its fast cells, if it has just become idle [ns].
    pub fn rests(&mut self, now_ns: u64, times: &Times) -> Option<u64> {
        if self.slc_used == 0 || self.fold_from_ns.is_some() {
            return None;
        }
        self.fold_from_ns = Some(now_ns + times.slc_idle_ns);
        self.fold_from_ns
    }

    fn read(&mut self, now_ns: u64, times: &Times) -> Operation {
        let most = self.held.as_ref().map_or(times.planes, |held| held.passes.min(times.planes));
        let mut pages = std::mem::take(&mut self.spare);
        while let Some(next) = self.reads.front() {
            let is_free = pages.iter().all(|own| times.plane(own) != times.plane(next));
            if pages.len() as u64 >= most || !is_free {
                break;
            }
            pages.extend(self.reads.pop_front());
        }
        match &mut self.held {
            Some(held) => held.passes -= pages.len() as u64,
            None if !self.writes.is_empty() => self.passed += pages.len() as u64,
            None => {}
        }
        self.fold_from_ns = None;
        let stop_ns = std::mem::take(&mut self.stop_ns);
        let mapping_ns = if pages.iter().any(|op| op.misses) { times.read_ns } else { 0 };
        Operation::new(Work::Read, pages, now_ns, stop_ns + mapping_ns + times.read_ns, times)
    }

    fn program(&mut self, now_ns: u64, times: &Times, bus_free_ns: &mut u64) -> Operation {
        let mut pages = std::mem::take(&mut self.spare);
        let (mut merges, mut misses) = (false, false);
        while (pages.len() as u64) < times.planes && !self.ftl.must_collect() {
            let Some(op) = self.writes.pop_front() else { break };
            let lpn = (op.lpn / times.dies) as u32;
            merges |= op.partial && self.ftl.is_written(lpn);
            misses |= op.misses;
            self.ftl.write(lpn);
            pages.push(op);
        }
        (self.clean, self.passed, self.fold_from_ns) = (false, 0, None);
        let before_ns = u64::from(merges) * times.read_ns + u64::from(misses) * times.read_ns;
        let over_ns = times.over(bus_free_ns, now_ns, pages.len());
        let ns = before_ns + over_ns + self.cells_ns(pages.len() as u64, times);
        Operation::new(Work::Program, pages, now_ns, ns, times)
    }

    /// Returns the time to program pages [ns]: in the fast cells while they have room, otherwise after as many pages
    /// have been moved out of them.
    fn cells_ns(&mut self, pages: u64, times: &Times) -> u64 {
        if times.slc_pages == 0 {
            return times.program_ns;
        }
        if self.slc_used + pages <= times.slc_pages {
            self.slc_used += pages;
            return times.slc_program_ns;
        }
        times.read_ns + times.program_ns + times.slc_program_ns
    }

    /// Does a step of collection if a write needs it or if the die has too few free blocks; returns the time of the
    /// step [ns].
    fn collect(&mut self, times: &Times) -> Option<u64> {
        let enough = self.clean || self.ftl.free_blocks() >= times.idle_blocks;
        if self.writes.is_empty() && enough {
            return None;
        }
        match self.ftl.collect() {
            Step::Copy => {
                // The other planes copy at the same time.
                let mut copies = 1;
                while copies < times.planes && self.ftl.has_copies() {
                    self.ftl.collect();
                    copies += 1;
                }
                Some(times.read_ns + times.program_ns)
            }
            Step::Erase => Some(times.erase_ns),
            Step::Nothing => {
                self.clean = true;
                None
            }
        }
    }

    /// Moves pages out of the fast cells while the die has nothing else to do; returns the time that this takes [ns].
    fn fold(&mut self, now_ns: u64, times: &Times) -> Option<u64> {
        let is_due = self.fold_from_ns.is_some_and(|from_ns| from_ns <= now_ns);
        if !is_due || self.slc_used == 0 || !self.writes.is_empty() {
            return None;
        }
        self.slc_used -= self.slc_used.min(times.planes);
        Some(times.read_ns + times.program_ns)
    }
}
