//! Flash card: dies behind a write buffer.
//!
//! ```text
//!   request --> link --> buffer (writes)  --> die of the page:  1. reads
//!               bytes    acknowledged here       (page % dies)  2. collection that a write needs
//!                        while there is room                    3. programs
//!                                                               4. collection ahead of need
//! ```
//!
//! A die does one operation at a time, in the order shown: a read waits for at most one program, copy or erase, or with
//! `suspend_reads` interrupts it (`flash_die.rs`). A write of part of an internal page is a read of the page and a
//! program. If the buffer cannot merge it ([`PartialPages::Through`]), it is acknowledged only when both are done.
//! Because writes of the same page queue at the same die, a log written in 512-byte blocks repeatedly waits for its own
//! page. Reads of pages that are in the buffer take only the time of the link.
//!
//! With `channels`, pages also take time on a bus that dies share; copies stay within the die. With `slc_mb`, writes
//! are quick until the single-level cells are full; the mapping counts a page once, in whichever cells it is. With
//! `trim`, a discard occupies the link for its time, then the pages that are entirely within it are free; writes of
//! these pages that are still in the buffer take effect after the discard.
//!
//! Not modelled: merging of whole-page writes of the same page in the buffer, static wear levelling, bad blocks, read
//! disturb. Event order at a die: the end of an operation is reported before the next begins.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::flash_die::{Die, Operation, PageOp, Times, Work};
pub use super::flash_parameters::{FlashParameters, PartialPages, Start};
use super::ftl::{Counts, Ftl};
use super::mapping_cache::MappingCache;
use super::slab::Slab;
use super::{Device, Done, Kind, Request, Wear};
use crate::kernel::sample::whole_ns;
use crate::kernel::{Machine, MachineId, Sim, Station, StationReport};

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
    /// Number of copies of each page that are in the buffer.
    in_buffer: Vec<u16>,
    link_free_ns: u64,
    /// Time at which the bus of each channel is free [ns].
    buses: Vec<u64>,
    /// Part of the mapping that is in memory; `None` if all of it is.
    mapping: Option<MappingCache>,
    station: Station,
}

/// A flash card.
pub struct Flash {
    name: String,
    sim: Sim,
    id: Cell<Option<MachineId>>,
    parameters: FlashParameters,
    pages: u64,
    times: Times,
    state: RefCell<State>,
}

/// Tokens at or above this are events of dies that have been idle for some time.
const REST: u64 = 1 << 39;
/// Tokens at or above this are events that the link has completed a transfer for an open request.
const LINK: u64 = 1 << 40;
/// Tokens at or above this are events that acknowledge an open request.
const DONE: u64 = 1 << 41;
/// Tokens at or above this are events that free the pages of an open discard, and acknowledge the discard.
const TRIM: u64 = 1 << 42;

impl Flash {
    /// Returns an idle card in the state that the parameters specify.
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
            let ftl = Ftl::new(per_die, blocks, pages_per_block, parameters.collector);
            let mut ftl = ftl.levelling_wear(parameters.wear_levelling);
            if parameters.start == Start::Steady {
                ftl.fill_steadily(idle_blocks.max(3), &mut dice);
            }
            Die::new(ftl)
        };
        let pages = u64::from(per_die) * dies;
        let state = RefCell::new(State {
            dies: (0..dies).map(die).collect(),
            open: Slab::default(),
            stalled: VecDeque::new(),
            buffer_free: parameters.buffer_pages,
            in_buffer: vec![0; pages as usize],
            link_free_ns: 0,
            buses: vec![0; parameters.channels.max(1) as usize],
            mapping: MappingCache::new(pages, page_bytes, parameters.mapping_cache_ratio),
            station: Station::default(),
        });
        let times = Times::new(&parameters, idle_blocks);
        let card =
            Rc::new(Self { name: name.into(), sim: sim.clone(), id: Cell::default(), pages, times, parameters, state });
        card.id.set(Some(sim.add_machine(card.clone())));
        card
    }

    /// Returns the sum of the counters of all dies.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for counts in self.state.borrow().dies.iter().map(|die| die.ftl.counts()) {
            sum.host_writes += counts.host_writes;
            sum.copies += counts.copies;
            sum.programs += counts.programs;
            sum.erases += counts.erases;
            sum.trimmed += counts.trimmed;
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
        self.take_link(state, whole_ns(command_us * 1e3 + bytes as f64 / link_mb_s * 1e3), token);
    }

    fn take_link(&self, state: &mut State, ns: u64, token: u64) {
        state.link_free_ns = state.link_free_ns.max(self.sim.now_ns()) + ns;
        // The same for all, so that requests keep their order.
        self.call(state.link_free_ns + self.times.firmware_ns, token);
    }

    /// Returns the die of a page.
    fn die_of(&self, lpn: u64) -> usize {
        (lpn % self.parameters.dies) as usize
    }

    /// Returns the pages that a request touches, each with a flag that is true if only a part of the page is touched;
    /// the request must begin within the card.
    fn pages_of(&self, request: Request) -> impl Iterator<Item = (u64, bool)> + use<> {
        let (page, pages) = (self.parameters.page_bytes, self.pages);
        let (begin, end) = (request.offset_bytes, request.offset_bytes + request.bytes.max(1));
        let (first, last) = request.units(page);
        (first..=last).map(move |unit| {
            let partial = begin > unit * page || end < (unit + 1) * page;
            (unit % pages, partial)
        })
    }

    /// Handles the arrival of a write's bytes; returns the observer to notify if the buffer accepts the write
    /// immediately.
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
        for (lpn, partial) in self.pages_of(request) {
            if buffered {
                state.in_buffer[lpn as usize] = state.in_buffer[lpn as usize].saturating_add(1);
            }
            let op = self.arrive(state, lpn, partial, by, buffered);
            state.dies[self.die_of(lpn)].writes.push_back(op);
        }
        // Only now: a die takes several pages at once.
        self.pages_of(request).for_each(|(lpn, _)| self.next(state, self.die_of(lpn)));
    }

    fn queue_reads(&self, state: &mut State, token: u64, request: Request) {
        let mut left = 0;
        for (lpn, partial) in self.pages_of(request) {
            if state.in_buffer[lpn as usize] > 0 {
                continue;
            }
            left += 1;
            let op = self.arrive(state, lpn, partial, Some(token), false);
            state.dies[self.die_of(lpn)].reads.push_back(op);
        }
        for (lpn, _) in self.pages_of(request) {
            if state.in_buffer[lpn as usize] == 0 {
                let at = self.die_of(lpn);
                state.dies[at].interrupt(self.sim.now_ns(), &self.times);
                self.next(state, at);
            }
        }
        if let Some(open) = state.open.get_mut(token) {
            open.pages_left = left;
        }
        if left == 0 {
            self.use_link(state, request.bytes, DONE + token);
        }
    }

    /// Records the arrival of work on a page; returns the work for the queue of a die.
    fn arrive(&self, state: &mut State, lpn: u64, partial: bool, request: Option<u64>, buffered: bool) -> PageOp {
        let arrived_ns = self.sim.now_ns();
        state.station.arrive(arrived_ns);
        let misses = state.mapping.as_mut().is_some_and(|mapping| mapping.misses(lpn));
        PageOp { lpn, partial, request, buffered, misses, arrived_ns }
    }

    /// Starts the next operation of an idle die.
    fn next(&self, state: &mut State, at: usize) {
        let State { dies, station, buses, .. } = state;
        let die = &mut dies[at];
        if die.now.is_some() {
            return;
        }
        let now = self.sim.now_ns();
        let bus = at % buses.len();
        let Some(operation) = die.begin(now, &self.times, &mut buses[bus]) else {
            if let Some(fold_ns) = die.rests(now, &self.times) {
                self.call(fold_ns, REST + at as u64);
            }
            return;
        };
        if !operation.resumed {
            if operation.work == Work::Own {
                station.arrive(now);
            }
            operation.arrivals().for_each(|arrived_ns| station.start(now, station.arrived_ns(arrived_ns)));
        }
        self.call(operation.due_ns, at as u64);
        die.now = Some(operation);
    }

    /// Handles the end of a die's operation; returns the observers of the requests that it completes.
    fn worked(&self, state: &mut State, at: usize) -> Vec<Done> {
        let now = self.sim.now_ns();
        let State { dies, buses, station, .. } = state;
        let die = &mut dies[at];
        // What was interrupted ends at another time.
        let Some(mut operation) = die.now.take_if(|own| own.due_ns == now) else { return Vec::new() };
        let bus = at % buses.len();
        if operation.send(now, &self.times, &mut buses[bus]) {
            self.call(operation.due_ns, at as u64);
            die.now = Some(operation);
            return Vec::new();
        }
        operation.arrivals().for_each(|arrived_ns| station.depart(now, station.arrived_ns(arrived_ns)));
        let Operation { pages, .. } = operation;
        let mut complete = Vec::new();
        for op in &pages {
            if op.buffered {
                state.buffer_free += 1;
                state.in_buffer[op.lpn as usize] -= 1;
                self.admit(state);
            }
            if let Some(token) = op.request {
                complete.extend(self.page_done(state, token));
            }
        }
        state.dies[at].recycle(pages);
        self.next(state, at);
        complete
    }

    /// Frees the pages that are entirely within a discard; returns the observer of the discard.
    fn trimmed(&self, state: &mut State, token: u64) -> Option<Done> {
        let Open { request, done, .. } = state.open.remove(token)?;
        for (lpn, _) in self.pages_of(request).filter(|(_, partial)| !partial) {
            let at = self.die_of(lpn);
            let die = &mut state.dies[at];
            die.ftl.trim((lpn / self.parameters.dies) as u32);
            die.clean = false;
            self.next(state, at);
        }
        Some(done)
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
        let mut pages = Vec::new();
        let complete = if token >= TRIM {
            self.trimmed(&mut state, token - TRIM)
        } else if token >= DONE {
            state.open.remove(token - DONE).map(|open| open.done)
        } else if token >= LINK {
            self.write_arrived(&mut state, token - LINK)
        } else if token >= REST {
            self.next(&mut state, (token - REST) as usize);
            None
        } else {
            pages = self.worked(&mut state, token as usize);
            None
        };
        drop(state);
        complete.into_iter().chain(pages).for_each(Done::tell);
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

    fn discard(&self, offset_bytes: u64, bytes: u64, done: Done) -> Option<Done> {
        if !self.parameters.trim {
            return Some(done);
        }
        let FlashParameters { command_us, trim_us, trim_us_per_kb, .. } = self.parameters;
        let request = Request::write(offset_bytes % self.capacity_bytes(), bytes.min(self.capacity_bytes()));
        let us = command_us + trim_us + trim_us_per_kb * request.bytes as f64 / 1_024.0;
        let mut state = self.state.borrow_mut();
        let token = state.open.insert(Open { request, done, pages_left: 0 });
        self.take_link(&mut state, whole_ns(us * 1e3), TRIM + token);
        None
    }

    fn wear(&self) -> Vec<Wear> {
        let state = self.state.borrow();
        let erased = || state.dies.iter().flat_map(|die| die.ftl.erased()).copied().map(u64::from);
        let counts = self.counts();
        vec![Wear {
            name: self.name.clone(),
            blocks: erased().count() as u64,
            erases: erased().sum(),
            erases_least: erased().min().unwrap_or(0),
            erases_most: erased().max().unwrap_or(0),
            host_pages: counts.host_writes,
            programmed_pages: counts.programs,
            trimmed_pages: counts.trimmed,
        }]
    }

    fn reports(&self) -> Vec<StationReport> {
        let state = self.state.borrow();
        // An interrupted operation stays in service.
        let at_once = if self.parameters.suspend_reads > 0 { 2 } else { 1 };
        let servers = self.parameters.dies * self.parameters.planes * at_once;
        vec![state.station.report(&self.name, servers, self.sim.now_ns())]
    }

    fn reset(&self) {
        let mut state = self.state.borrow_mut();
        state.station.reset(self.sim.now_ns());
        state.dies.iter_mut().for_each(|die| die.ftl.reset());
    }
}
