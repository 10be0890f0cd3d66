//! Log writer: puts redo into blocks, writes them or hands them to the paths' threads, and reports when they are
//! durable.
//!
//! # The race, and what survives
//!
//! With the rule `first`, a write goes to both paths, and is acknowledged as soon as it is durable on one of them.
//! Three rules make a crash harmless:
//!
//! 1. The first path gets every write, one after the other and in order, so it has no holes.
//! 2. The next write begins only when the previous one is acknowledged.
//! 3. A write that the second path does not get because it is too far behind (*skipped*) is acknowledged only when it
//!    is durable on the first path.
//!
//! So an acknowledged write is either on the first path, or the second path holds all writes from the end of the
//! first path up to it: recovery reads the first path to its end and continues on the second.
//!
//! # When a copy falls behind
//!
//! The backlog of each copy is limited. When the backlog of the second path is full, writes skip that path until it has
//! caught up (the reason BUSY of a flash log). When the backlog of the first path is full, the next write is held back
//! until there is room: no write skips the first path.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use super::ProbeError;
use super::block::{HEAD, Stamp};
use super::buffer::{Buffer, Pool};
use super::copy::{Copies, Done};
use super::count::Counts;
use super::medium::Medium;
use super::record::{Rows, Waiter};
use super::spec::{ProbeArm, Rule};
use crate::clock::Clock;

/// Who writes blocks to the paths.
enum Way {
    /// The log writer writes the blocks itself.
    Direct(Box<dyn Medium>),
    /// One thread per path writes the blocks.
    Copies(Copies),
}

/// Write that is not yet durable on every path it was sent to.
struct Outstanding {
    sequence: u64,
    submitted_ns: i64,
    blocks: u32,
    bytes: u64,
    buffer: Arc<Buffer>,
    /// For each copy, true while it is still being written.
    open: [bool; 2],
    /// Time that the device of each copy took \[ns\], without the time in the queue behind older writes on the path.
    took_ns: [Option<i64>; 2],
}

/// One log, its position, and its outstanding writes.
pub(super) struct LogWriter {
    way: Way,
    paths: Vec<PathBuf>,
    rule: Rule,
    run: u64,
    block_bytes: usize,
    payload_bytes: u64,
    slots: u64,
    next_slot: u64,
    sequence: u64,
    backlog_max: u64,
    outlier_ns: i64,
    behind: [u64; 2],
    outstanding: VecDeque<Outstanding>,
    pool: Pool,
    clock: Clock,
    copies_cpu_ns: [u64; 2],
    /// Counters of this log.
    pub counts: Counts,
}

impl LogWriter {
    /// Creates the log writer of an arm on these media, one per path.
    ///
    /// # Errors
    /// There is no medium, or a thread cannot be started.
    pub fn new(arm: &ProbeArm, run: u64, mut media: Vec<Box<dyn Medium>>, clock: Clock) -> Result<Self, ProbeError> {
        let alone = media.len() == 1 && !arm.hand_over;
        let way = match media.pop() {
            Some(only) if alone => Way::Direct(only),
            Some(last) => {
                media.push(last);
                Way::Copies(Copies::start(media, clock)?)
            }
            None => return Err(ProbeError::spec("path", "no path", "name one or two files")),
        };
        Ok(Self {
            way,
            paths: arm.paths.clone(),
            rule: arm.rule,
            run,
            block_bytes: arm.block_bytes,
            payload_bytes: arm.payload_bytes(),
            slots: arm.slots(),
            next_slot: 0,
            sequence: 0,
            backlog_max: arm.backlog(),
            outlier_ns: arm.outlier_ns as i64,
            behind: [0; 2],
            outstanding: VecDeque::new(),
            pool: Pool::default(),
            clock,
            copies_cpu_ns: [0; 2],
            counts: Counts::default(),
        })
    }

    /// Writes this amount of redo, after which `commits` commits are complete.
    ///
    /// Returns the number of the write and the time of its acknowledgement \[ns since the epoch\].
    ///
    /// # Errors
    /// The write failed, or a copy's thread ended.
    pub fn write(&mut self, redo_bytes: u64, commits: u64, rows: &mut Rows) -> Result<(u64, i64), ProbeError> {
        let blocks = redo_bytes.div_ceil(self.payload_bytes).max(1);
        let length = blocks as usize * self.block_bytes;
        let offset = self.place(blocks);
        self.sequence += 1;
        let buffer = self.filled(blocks as u32, length, commits);
        self.counts.writes += 1;
        self.counts.blocks += blocks;
        self.counts.wasted_bytes += blocks * self.payload_bytes - redo_bytes;
        let started_ns = self.clock.now_ns();
        let acknowledged_ns = match &mut self.way {
            Way::Direct(medium) => {
                let result = medium.write_durably(buffer.filled(length), offset);
                let ended_ns = self.clock.now_ns();
                result.map_err(|e| failed(&self.paths[0], self.sequence, e))?;
                self.counts.bytes[0] += length as u64;
                self.counts.slow[0] += u64::from(ended_ns - started_ns >= self.outlier_ns);
                rows.write(Waiter::Copy(0), started_ns, ended_ns, (self.sequence, blocks as u32, 0));
                self.pool.give(buffer);
                ended_ns
            }
            Way::Copies(_) => self.race(started_ns, (buffer, length), offset, rows)?,
        };
        rows.write(
            Waiter::LogWriter,
            started_ns,
            acknowledged_ns,
            (self.paths.len() as u64, blocks as u32, self.paths.len() as i64),
        );
        Ok((self.sequence, acknowledged_ns))
    }

    /// Waits until every copy of every write is durable.
    ///
    /// # Errors
    /// A write failed, or a copy's thread ended.
    pub fn drain(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        while !self.outstanding.is_empty() {
            self.next_done(rows)?;
        }
        Ok(())
    }

    /// Returns the CPU time of the copies' threads so far \[ns\].
    pub fn copies_cpu_ns(&self) -> u64 {
        self.copies_cpu_ns.iter().sum()
    }

    /// Reserves the next slots of the log and returns their offset; a write never wraps around the end of the log.
    fn place(&mut self, blocks: u64) -> u64 {
        if self.next_slot + blocks > self.slots {
            self.next_slot = 0;
            self.counts.laps += 1;
        }
        let slot = self.next_slot;
        self.next_slot += blocks;
        HEAD as u64 + slot * self.block_bytes as u64
    }

    /// Returns a buffer with the blocks of the write whose slots were reserved last, including their headers.
    fn filled(&mut self, blocks: u32, length: usize, commits: u64) -> Arc<Buffer> {
        let mut buffer = self.pool.take(length);
        let first = self.next_slot - u64::from(blocks);
        let bytes = buffer.filled_mut(length).chunks_exact_mut(self.block_bytes);
        for (part, block) in bytes.enumerate() {
            let stamp = Stamp {
                run: self.run,
                sequence: self.sequence,
                slot: first + part as u64,
                part: part as u32,
                parts: blocks,
                commits,
            };
            stamp.put(block);
        }
        Arc::new(buffer)
    }

    /// Hands a write to the copies and waits for its acknowledgement; returns the time of the acknowledgement \[ns
    /// since the epoch\].
    fn race(
        &mut self,
        started_ns: i64,
        (buffer, length): (Arc<Buffer>, usize),
        offset: u64,
        rows: &mut Rows,
    ) -> Result<i64, ProbeError> {
        let bytes = length as u64;
        while let Some(done) = self.poll() {
            self.note(&done, rows)?;
        }
        if self.is_full(0, bytes) {
            self.counts.held_back += 1;
            let from = self.clock.now_ns();
            while self.is_full(0, bytes) {
                self.next_done(rows)?;
            }
            rows.write(Waiter::Room, from, self.clock.now_ns(), (self.sequence, 0, 0));
        }
        let two = self.paths.len() == 2;
        let skipped = two && self.rule == Rule::First && self.is_full(1, bytes);
        let open = [true, two && !skipped];
        self.counts.skipped_busy += u64::from(skipped);
        for copy in (0..2).filter(|copy| open[*copy]) {
            if let Way::Copies(copies) = &self.way {
                copies.submit(copy, self.sequence, (&buffer, length), offset)?;
            }
            self.behind[copy] += bytes;
            self.counts.behind_max[copy] = self.counts.behind_max[copy].max(self.behind[copy]);
        }
        let blocks = (length / self.block_bytes) as u32;
        self.outstanding.push_back(Outstanding {
            sequence: self.sequence,
            submitted_ns: started_ns,
            blocks,
            bytes,
            buffer,
            open,
            took_ns: [None; 2],
        });
        let racing = open == [true, true] && self.rule == Rule::First;
        let mut waiting = if racing { 1 } else { open.iter().filter(|o| **o).count() };
        loop {
            let done = self.next_done(rows)?;
            if done.sequence != self.sequence {
                continue;
            }
            waiting -= 1;
            if waiting == 0 {
                if racing {
                    self.counts.won[done.copy] += 1;
                }
                return Ok(self.clock.now_ns());
            }
        }
    }

    /// Returns true if the backlog of a copy has no room for these bytes; an empty backlog accepts any write.
    fn is_full(&self, copy: usize, bytes: u64) -> bool {
        self.behind[copy] > 0 && self.behind[copy] + bytes > self.backlog_max
    }

    fn poll(&self) -> Option<Done> {
        match &self.way {
            Way::Direct(_) => None,
            Way::Copies(copies) => copies.poll(),
        }
    }

    fn next_done(&mut self, rows: &mut Rows) -> Result<Done, ProbeError> {
        let done = match &self.way {
            Way::Copies(copies) => copies.wait()?,
            Way::Direct(_) => {
                return Err(ProbeError::Thread { what: "is not there".to_owned() });
            }
        };
        self.note(&done, rows)?;
        Ok(done)
    }

    /// Processes a copy's report: adds its row, and updates the backlog and the outcome of the race.
    fn note(&mut self, done: &Done, rows: &mut Rows) -> Result<(), ProbeError> {
        if let Err(error) = &done.result {
            let error = std::io::Error::new(error.kind(), error.to_string());
            return Err(failed(&self.paths[done.copy], done.sequence, error));
        }
        self.copies_cpu_ns[done.copy] = done.cpu_ns;
        let Some(front) = self.outstanding.front().map(|write| write.sequence) else {
            return Ok(());
        };
        let Some(write) = self.outstanding.get_mut((done.sequence - front) as usize) else {
            return Ok(());
        };
        write.open[done.copy] = false;
        write.took_ns[done.copy] = Some(done.ended_ns - done.started_ns);
        self.behind[done.copy] -= write.bytes;
        self.counts.bytes[done.copy] += write.bytes;
        let queued_ns = done.started_ns - write.submitted_ns;
        let about = (done.sequence, write.blocks, queued_ns);
        rows.write(Waiter::Copy(done.copy), done.started_ns, done.ended_ns, about);
        while self.outstanding.front().is_some_and(|write| write.open == [false, false]) {
            if let Some(write) = self.outstanding.pop_front() {
                let raced = self.rule == Rule::First;
                self.counts.judge(write.took_ns, self.outlier_ns, raced);
                self.pool.give(write.buffer);
            }
        }
        Ok(())
    }
}

fn failed(path: &std::path::Path, sequence: u64, source: std::io::Error) -> ProbeError {
    ProbeError::Write { path: path.to_owned(), sequence, source }
}
