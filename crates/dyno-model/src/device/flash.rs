//! Flash card: dies behind a write buffer.
//!
//! ```text
//!   request --> link --> buffer (writes)  --> die of the page:  1. reads
//!               bytes    acknowledged here       (page % dies)  2. collection that a write needs
//!                        while there is room                    3. programs
//!                                                               4. collection ahead of need
//! ```
//!
//! A die does one operation at a time, without interruption, in the order shown: a read waits for at most one program,
//! copy or erase. A write of part of an internal page is a read of the page and a program; if the buffer cannot merge
//! it ([`PartialPages::Through`]) it is acknowledged only when that is done, and because writes of the same page queue
//! at the same die, a log written in 512-byte blocks waits for its own page again and again. Reads of pages that are in
//! the buffer cost only the link.
//!
//! Not modelled: merging of whole-page writes of the same page in the buffer, program and erase suspension, wear
//! levelling, read disturb. Event order at a die: the end of an operation is reported before the next begins.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

pub use super::flash_parameters::{FlashParameters, PartialPages, Start};
use super::ftl::{Counts, Ftl, Step};
use super::slab::Slab;
use super::{Device, Done, Kind, Request};
use crate::kernel::sample::whole_ns;
use crate::kernel::{Machine, MachineId, Sim, Station, StationReport};

/// Work on a page for a request; `None` if only the buffer waits for it.
#[derive(Clone, Copy)]
struct PageOp {
    lpn: u64,
    partial: bool,
    /// Request to acknowledge when done.
    request: Option<u64>,
    /// True if it releases a place of the buffer when done.
    buffered: bool,
    arrived_ns: u64,
}

#[derive(Clone, Copy)]
enum Work {
    Read(PageOp),
    Program(PageOp),
    Collect(u64),
}

struct Die {
    ftl: Ftl,
    reads: VecDeque<PageOp>,
    writes: VecDeque<PageOp>,
    work: Option<Work>,
    /// True if collection would free nothing until something is written.
    clean: bool,
}

struct Open {
    request: Request,
    done: Done,
    pages_left: u64,
}

struct State {
    dies: Vec<Die>,
    open: Slab<Open>,
    /// Writes that wait for the buffer.
    stalled: VecDeque<u64>,
    buffer_free: u64,
    /// Number of copies of each page in the buffer.
    in_buffer: Vec<u16>,
    link_free_ns: u64,
    station: Station,
}

/// A flash card.
pub struct Flash {
    name: String,
    sim: Sim,
    id: Cell<Option<MachineId>>,
    parameters: FlashParameters,
    pages: u64,
    idle_blocks: u32,
    read_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    firmware_ns: u64,
    state: RefCell<State>,
}

/// Tokens at or above this are completions of the link for an open request.
const LINK: u64 = 1 << 40;
/// Tokens at or above this acknowledge an open request.
const DONE: u64 = 1 << 41;

impl Flash {
    /// Returns an idle card in the state that the parameters say.
    pub fn new(sim: &Sim, name: &str, parameters: FlashParameters) -> Rc<Self> {
        let FlashParameters { dies, page_bytes, pages_per_block, .. } = parameters;
        let per_die = ((parameters.capacity_mb << 20) / page_bytes / dies) as u32;
        let physical = f64::from(per_die) * (1.0 + parameters.over_provisioning_ratio);
        let blocks = (physical / f64::from(pages_per_block)).ceil() as u32 + 3;
        // More than half of the spare blocks cannot be kept free for long.
        let spare = blocks - per_die.div_ceil(pages_per_block);
        let idle_blocks = parameters.idle_collect_blocks.min(spare / 2);
        let mut dice = sim.stream(&format!("{name}/steady"));
        let die = |_| {
            let mut ftl = Ftl::new(per_die, blocks, pages_per_block, parameters.collector);
            if parameters.start == Start::Steady {
                ftl.fill_steadily(idle_blocks.max(3), &mut dice);
            }
            let (reads, writes) = (VecDeque::new(), VecDeque::new());
            Die { ftl, reads, writes, work: None, clean: false }
        };
        let pages = u64::from(per_die) * dies;
        let state = RefCell::new(State {
            dies: (0..dies).map(die).collect(),
            open: Slab::default(),
            stalled: VecDeque::new(),
            buffer_free: parameters.buffer_pages,
            in_buffer: vec![0; pages as usize],
            link_free_ns: 0,
            station: Station::default(),
        });
        let ns = |us: f64| whole_ns(us * 1e3);
        let card = Rc::new(Self {
            name: name.into(),
            sim: sim.clone(),
            id: Cell::default(),
            pages,
            idle_blocks,
            read_ns: ns(parameters.read_us),
            program_ns: ns(parameters.program_us),
            erase_ns: ns(parameters.erase_us),
            firmware_ns: ns(parameters.firmware_us),
            parameters,
            state,
        });
        card.id.set(Some(sim.add_machine(card.clone())));
        card
    }

    /// Returns the counters of all dies together.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for counts in self.state.borrow().dies.iter().map(|die| die.ftl.counts()) {
            sum.host_writes += counts.host_writes;
            sum.copies += counts.copies;
            sum.programs += counts.programs;
            sum.erases += counts.erases;
        }
        sum
    }

    /// Returns true if the page counts of every die add up.
    pub fn holds(&self) -> bool {
        let state = self.state.borrow();
        state.dies.iter().all(|die| die.ftl.holds()) && state.station.holds(self.sim.now_ns())
    }

    fn call(&self, time_ns: u64, token: u64) {
        if let Some(id) = self.id.get() {
            self.sim.call_at(time_ns, id, token);
        }
    }

    fn use_link(&self, state: &mut State, bytes: u64, token: u64) {
        let FlashParameters { command_us, link_mb_s, .. } = self.parameters;
        let ns = whole_ns(command_us * 1e3 + bytes as f64 / link_mb_s * 1e3);
        state.link_free_ns = state.link_free_ns.max(self.sim.now_ns()) + ns;
        // The same for all, so that requests keep their order.
        self.call(state.link_free_ns + self.firmware_ns, token);
    }

    /// Returns the pages of a request, whose offset is within the card.
    fn pages_of(&self, request: Request) -> impl Iterator<Item = (u64, bool)> + use<> {
        let (page, pages) = (self.parameters.page_bytes, self.pages);
        let (begin, end) = (request.offset_bytes, request.offset_bytes + request.bytes.max(1));
        let (first, last) = request.units(page);
        (first..=last).map(move |unit| {
            let partial = begin > unit * page || end < (unit + 1) * page;
            (unit % pages, partial)
        })
    }

    /// Handles the arrival of a write's bytes; returns the write if the buffer accepts it at once.
    fn write_arrived(&self, state: &mut State, token: u64) -> Option<Done> {
        let open = state.open.get_mut(token)?;
        let (request, pages) = (open.request, open.pages_left);
        let partial = self.pages_of(request).any(|(_, partial)| partial);
        let through = partial && self.parameters.partial_pages == PartialPages::Through;
        if through || pages > self.parameters.buffer_pages {
            self.queue_writes(state, request, Some(token), false);
            return None;
        }
        if !state.stalled.is_empty() || pages > state.buffer_free {
            state.stalled.push_back(token);
            return None;
        }
        state.buffer_free -= pages;
        self.queue_writes(state, request, None, true);
        state.open.remove(token).map(|open| open.done)
    }

    /// Admits writes into the buffer, in order, while there is room.
    fn admit(&self, state: &mut State) {
        while let Some(&token) = state.stalled.front() {
            let Some(open) = state.open.get_mut(token) else { return };
            if open.pages_left > state.buffer_free {
                return;
            }
            state.buffer_free -= open.pages_left;
            let request = open.request;
            state.stalled.pop_front();
            self.call(self.sim.now_ns(), DONE + token);
            self.queue_writes(state, request, None, true);
        }
    }

    fn queue_writes(&self, state: &mut State, request: Request, by: Option<u64>, buffered: bool) {
        let arrived_ns = self.sim.now_ns();
        for (lpn, partial) in self.pages_of(request) {
            if buffered {
                state.in_buffer[lpn as usize] = state.in_buffer[lpn as usize].saturating_add(1);
            }
            state.station.arrive(arrived_ns);
            let op = PageOp { lpn, partial, request: by, buffered, arrived_ns };
            let die = (lpn % self.parameters.dies) as usize;
            state.dies[die].writes.push_back(op);
            self.next(state, die);
        }
    }

    fn queue_reads(&self, state: &mut State, token: u64, request: Request) {
        let arrived_ns = self.sim.now_ns();
        let mut left = 0;
        for (lpn, partial) in self.pages_of(request) {
            if state.in_buffer[lpn as usize] > 0 {
                continue;
            }
            left += 1;
            state.station.arrive(arrived_ns);
            let op = PageOp { lpn, partial, request: Some(token), buffered: false, arrived_ns };
            let die = (lpn % self.parameters.dies) as usize;
            state.dies[die].reads.push_back(op);
            self.next(state, die);
        }
        if let Some(open) = state.open.get_mut(token) {
            open.pages_left = left;
        }
        if left == 0 {
            self.use_link(state, request.bytes, DONE + token);
        }
    }

    /// Starts the next operation of an idle die.
    fn next(&self, state: &mut State, at: usize) {
        let State { dies, station, .. } = state;
        let die = &mut dies[at];
        if die.work.is_some() {
            return;
        }
        let now = self.sim.now_ns();
        let dies_count = self.parameters.dies;
        let (work, ns) = if let Some(op) = die.reads.pop_front() {
            (Work::Read(op), self.read_ns)
        } else if !die.writes.is_empty() && !die.ftl.must_collect() {
            let Some(op) = die.writes.pop_front() else { return };
            let lpn = (op.lpn / dies_count) as u32;
            let merge_ns = if op.partial && die.ftl.is_written(lpn) { self.read_ns } else { 0 };
            die.ftl.write(lpn);
            die.clean = false;
            (Work::Program(op), merge_ns + self.program_ns)
        } else {
            let enough = die.clean || die.ftl.free_blocks() >= self.idle_blocks;
            if die.writes.is_empty() && enough {
                return;
            }
            let ns = match die.ftl.collect() {
                Step::Copy => self.read_ns + self.program_ns,
                Step::Erase => self.erase_ns,
                Step::Nothing => {
                    die.clean = true;
                    return;
                }
            };
            station.arrive(now);
            (Work::Collect(now), ns)
        };
        let arrived_ns = match work {
            Work::Read(op) | Work::Program(op) => op.arrived_ns,
            Work::Collect(arrived_ns) => arrived_ns,
        };
        station.start(now, station.arrived_ns(arrived_ns));
        die.work = Some(work);
        self.call(now + ns, at as u64);
    }

    /// Handles the end of a die's operation; returns the request that it completes, if any.
    fn worked(&self, state: &mut State, at: usize) -> Option<Done> {
        let work = state.dies[at].work.take()?;
        let (op, arrived_ns) = match work {
            Work::Read(op) | Work::Program(op) => (Some(op), op.arrived_ns),
            Work::Collect(arrived_ns) => (None, arrived_ns),
        };
        state.station.depart(self.sim.now_ns(), state.station.arrived_ns(arrived_ns));
        let mut complete = None;
        if let Some(op) = op {
            if op.buffered {
                state.buffer_free += 1;
                state.in_buffer[op.lpn as usize] -= 1;
                self.admit(state);
            }
            if let Some(token) = op.request {
                complete = self.page_done(state, token);
            }
        }
        self.next(state, at);
        complete
    }

    fn page_done(&self, state: &mut State, token: u64) -> Option<Done> {
        let open = state.open.get_mut(token)?;
        open.pages_left -= 1;
        if open.pages_left > 0 {
            return None;
        }
        if open.request.kind == Kind::Read {
            let bytes = open.request.bytes;
            self.use_link(state, bytes, DONE + token);
            return None;
        }
        state.open.remove(token).map(|open| open.done)
    }
}

impl Machine for Flash {
    fn event(&self, token: u64) {
        let mut state = self.state.borrow_mut();
        let complete = if token >= DONE {
            state.open.remove(token - DONE).map(|open| open.done)
        } else if token >= LINK {
            self.write_arrived(&mut state, token - LINK)
        } else {
            self.worked(&mut state, token as usize)
        };
        drop(state);
        if let Some(done) = complete {
            done.tell();
        }
    }
}

impl Device for Flash {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity_bytes(&self) -> u64 {
        self.pages * self.parameters.page_bytes
    }

    fn submit(&self, mut request: Request, done: Done) {
        request.offset_bytes %= self.capacity_bytes();
        let (first, last) = request.units(self.parameters.page_bytes);
        let mut state = self.state.borrow_mut();
        let token = state.open.insert(Open { request, done, pages_left: last - first + 1 });
        match request.kind {
            Kind::Write => self.use_link(&mut state, request.bytes, LINK + token),
            Kind::Read => self.queue_reads(&mut state, token, request),
        }
    }

    fn reports(&self) -> Vec<StationReport> {
        let state = self.state.borrow();
        vec![state.station.report(&self.name, self.parameters.dies, self.sim.now_ns())]
    }

    fn reset(&self) {
        let mut state = self.state.borrow_mut();
        state.station.reset(self.sim.now_ns());
        state.dies.iter_mut().for_each(|die| die.ftl.reset());
    }
}
