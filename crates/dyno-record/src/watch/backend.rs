//! One server process under watchpoints: its events, their ring, and its memory. Dropping it removes the watchpoints.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::notes::{self, Note, SAMPLE};
use crate::perf::{self, Event, REGISTERS, Ring, Scope, Source};

use super::layout::{Layout, STACK};
use super::rings::PAGES_LEAST;
use super::store::Stores;
use super::target::Target;

/// Largest length of a statement's text that is read [bytes].
const TEXT_MOST: usize = 4096;

/// Process of the server.
pub struct Backend {
    /// Index of the process's session, once it has one.
    pub at: Option<usize>,
    /// True if the process's waits are observed in its session.
    pub is_seen: bool,
    /// Address of the process's wait word, once that word is watched.
    pub word: Option<u64>,
    /// True if the process's calls are watched, or never will be.
    pub has_calls: bool,
    /// Size of the ring [pages].
    pub pages: usize,
    pid: i32,
    /// Write position of the ring when the process was first observed.
    seen_at: u64,
    memory: Option<File>,
    entry: u64,
    ring: Ring,
    tasks: Event,
    wait: Option<Event>,
    call: Option<Event>,
}

/// Meaning of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A wait on this event begins, or a wait ends (0); `None` if the store could not be decoded.
    Wait(Option<u32>),
    /// A statement begins.
    TakeUp(crate::probes::Kind),
    /// Query id of the statement.
    QueryId(u64),
    /// The process was taken off the processor (`true`) or put on it.
    Switch(bool),
    /// The process ended.
    Exit,
    /// This number of notes was lost before the next one.
    Lost(u64),
}

impl Backend {
    /// Opens a ring and the events for a process's task switches and exit.
    ///
    /// The ring is made smaller, down to [`PAGES_LEAST`], if the memory cannot be locked.
    ///
    /// # Errors
    /// The kernel refuses to open an event or the ring.
    pub fn listen(pid: i32, at: Option<usize>, pages: usize) -> io::Result<Self> {
        let tasks = Event::open(&Source::OwnTasks, Scope { pid, cpu: -1 }, None)?;
        let mut pages = pages;
        let ring = loop {
            match Ring::of(&tasks, pages) {
                Err(_) if pages > PAGES_LEAST => pages /= 2,
                other => break other?,
            }
        };
        tasks.enable()?;
        let memory = File::open(format!("/proc/{pid}/mem")).ok();
        Ok(Self {
            at,
            is_seen: false,
            word: None,
            has_calls: false,
            pages,
            pid,
            seen_at: 0,
            memory,
            entry: 0,
            ring,
            tasks,
            wait: None,
            call: None,
        })
    }

    fn read(&self, addr: u64, into: &mut [u8]) -> Option<()> {
        self.memory.as_ref()?.read_exact_at(into, addr).ok()
    }

    fn pointer(&self, addr: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(addr, &mut bytes)?;
        Some(u64::from_le_bytes(bytes)).filter(|value| *value != 0)
    }

    fn open(&self, source: &Source<'_>) -> io::Result<Event> {
        let event = Event::open(source, Scope { pid: self.pid, cpu: -1 }, None)?;
        event.into_ring_of(&self.tasks)?;
        event.enable()?;
        Ok(event)
    }

    /// Watches the process's wait word if the process already has its place in shared memory; returns true in that
    /// case.
    ///
    /// # Errors
    /// The kernel refuses the watchpoint.
    pub fn watch_waits(&mut self, target: &Target) -> io::Result<bool> {
        let Some(word) = self.pointer(target.pointer).filter(|word| *word != target.before) else { return Ok(false) };
        self.wait = Some(self.open(&Source::Watch { address: word, bytes: 4, stack: 0 })?);
        self.word = Some(word);
        Ok(true)
    }

    /// Watches the process's calls if it already has its entry in shared memory.
    ///
    /// # Errors
    /// The kernel refuses the watchpoint.
    pub fn watch_calls(&mut self, layout: &Layout) -> io::Result<()> {
        let Some(entry) = self.pointer(layout.entry) else { return Ok(()) };
        self.has_calls = true;
        self.entry = entry;
        self.call = Some(self.open(&Source::Watch { address: entry + layout.query_id, bytes: 8, stack: STACK })?);
        Ok(())
    }

    /// Stops watching the process's calls; returns true if they were watched.
    pub fn give_up_calls(&mut self) -> bool {
        self.has_calls = true;
        self.call.take().is_some()
    }

    /// Returns the time of this reading [ns] and what the process waits for; reads again if a note arrived in between.
    pub fn now(&mut self) -> Option<(u64, u32)> {
        let mut event = [0; 4];
        let mut at_ns = 0;
        for _ in 0..5 {
            self.seen_at = self.ring.head();
            at_ns = perf::now_ns();
            self.read(self.word?, &mut event)?;
            if self.ring.head() == self.seen_at {
                break;
            }
        }
        Some((at_ns, u32::from_le_bytes(event)))
    }

    /// Returns the text of the statement to which the most recently read note belongs.
    ///
    /// `None` if there are newer notes, or if the server is writing the text.
    pub fn text(&self, layout: &Layout) -> Option<Vec<u8>> {
        self.text_at(layout, self.ring.taken())
    }

    /// Returns the text of the current statement if no note has arrived since the process was first observed.
    pub fn first_text(&self, layout: &Layout) -> Option<Vec<u8>> {
        self.text_at(layout, self.seen_at)
    }

    /// Returns the text of the current statement if the ring's write position is still `head`.
    ///
    /// The server first clears the query id, which triggers the watchpoint and so adds a note to the ring; then it
    /// writes the text. Meanwhile the change count at the beginning of the server's status entry is odd.
    fn text_at(&self, layout: &Layout, head: u64) -> Option<Vec<u8>> {
        let changes = || {
            let mut bytes = [0; 4];
            self.read(self.entry, &mut bytes)?;
            Some(u32::from_le_bytes(bytes)).filter(|count| count.is_multiple_of(2))
        };
        let place = self.pointer(self.entry + layout.text?).filter(|_| self.entry != 0)?;
        let before = changes()?;
        let mut bytes = vec![0; TEXT_MOST];
        let got = self.memory.as_ref()?.read_at(&mut bytes, place).ok()?;
        let end = bytes[..got].iter().position(|byte| *byte == 0)?;
        bytes.truncate(end);
        (changes()? == before && self.ring.head() == head && end > 0).then_some(bytes)
    }

    /// Reads the available notes, in time order.
    pub fn drain(&mut self, layout: Option<&Layout>, stores: &mut Stores, into: &mut Vec<(u64, Seen)>) {
        let (word, memory) = (self.word, self.memory.as_ref());
        let read = |addr: u64, bytes: &mut [u8]| memory?.read_exact_at(bytes, addr).ok();
        self.ring.each(&mut |kind, misc, body| {
            let seen = if kind == SAMPLE {
                sample(body, word, layout, stores, &read)
            } else {
                let told = notes::record(kind, misc, body);
                told.and_then(|told| Some((told.at_ns, other(&told.note)?)))
            };
            into.extend(seen);
        });
    }

    /// Returns true if the process still exists.
    pub fn is_there(&self) -> bool {
        std::path::Path::new(&format!("/proc/{}/stat", self.pid)).exists()
    }
}

fn other(note: &Note) -> Option<Seen> {
    Some(match note {
        Note::Switch(off) => Seen::Switch(*off),
        Note::Exit => Seen::Exit,
        Note::Lost(count) => Seen::Lost(*count),
        _ => return None,
    })
}

type Read<'a> = dyn Fn(u64, &mut [u8]) -> Option<()> + 'a;

/// Parses a sample: event, instruction pointer, process, time, written address, registers, stack.
fn sample(
    body: &[u8],
    word: Option<u64>,
    layout: Option<&Layout>,
    stores: &mut Stores,
    read: &Read<'_>,
) -> Option<(u64, Seen)> {
    let at = |place| notes::u64_at(body, place);
    let (ip, at_ns, place, has_registers) = (at(8)?, at(24)?, at(32)?, at(40)? != 0);
    let mut registers = [0; 16];
    for (value, number) in registers.iter_mut().zip(REGISTERS).filter(|_| has_registers) {
        // perf numbers the eight old registers from 0 on, and the others from 16 on.
        let slot = if number < 8 { number } else { number - 8 };
        *value = at(48 + slot as usize * 8)?;
    }
    if Some(place) == word {
        let value = stores.value(ip, place, 4, &registers, read).map(|value| value as u32);
        return Some((at_ns, Seen::Wait(value)));
    }
    let layout = layout?;
    if layout.is_take_up(ip) {
        let stack = if has_registers { 48 + 16 * 8 } else { 48 };
        let size = at(stack)? as usize;
        return Some((at_ns, Seen::TakeUp(layout.kind(body.get(stack + 8..stack + 8 + size)?))));
    }
    // A query id that is cleared elsewhere belongs to another statement of the same call.
    let id = stores.value(ip, place, 8, &registers, read).filter(|id| *id != 0)?;
    Some((at_ns, Seen::QueryId(id)))
}
