//! Session: thinks, computes, reads and changes blocks, commits, scans, sorts.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::direct::Pipe;
use super::event::Event;
use super::instance::Instance;
use super::sort::{Sort, sort};
use super::task::Task;
use super::wait::{Call, CallKind, Ledger};
use crate::device::Kind;

/// File numbers in the parameters of waits.
const DATA_FILE: u64 = 1;
const TEMP_FILE: u64 = 201;

/// A scan that bypasses the buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Scan {
    /// Offset at which the scan begins [bytes].
    pub offset_bytes: u64,
    /// Number of bytes that the scan reads.
    pub bytes: u64,
    /// Size of an I/O [bytes].
    pub io_bytes: u64,
    /// Number of I/Os in flight at the same time.
    pub ahead: u64,
    /// CPU time for each I/O [ns].
    pub cpu_ns_per_io: u64,
}

/// Counts of a session, from which the counts of its calls follow.
#[derive(Clone, Copy, Default)]
struct Tally {
    redo_bytes: u64,
    reads: u64,
    gets: u64,
}

/// The open transaction.
#[derive(Default)]
struct Transaction {
    redo_bytes: u64,
    /// Size of the redo in the private strand [bytes].
    private_bytes: u64,
    /// Blocks that the transaction will change.
    blocks: Vec<u64>,
    /// True if the private strand was too small and redo goes to the public strands.
    public: bool,
}

/// A call that has not ended.
pub struct Open {
    kind: CallKind,
    statement: u16,
    started_ns: u64,
    cpu_ns: u64,
    tally: Tally,
}

/// A session whose steps account for every nanosecond.
pub struct Session {
    number: u32,
    task: Task,
    instance: Instance,
    transaction: Transaction,
    tally: Tally,
}

impl Instance {
    /// Returns a new session, which begins now. The caller chooses its number, which no other open session may have.
    pub fn session(&self, number: u32) -> Session {
        let (transaction, tally) = (Transaction::default(), Tally::default());
        Session { number, task: self.task(number), instance: self.clone(), transaction, tally }
    }
}

impl Session {
    /// Returns the number of the session.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the ledger of the session's time.
    pub fn ledger(&self) -> Ledger {
        self.task.ledger()
    }

    /// Lets the client think for `ns` nanoseconds.
    pub async fn think(&mut self, ns: u64) {
        if ns > 0 {
            let begin_ns = self.task.leave();
            self.instance.sim().hold(ns).await;
            self.task.back(Event::ClientMessage, begin_ns, [0; 3]).await;
        }
    }

    /// Lets the client wait for an event outside of the instance.
    pub async fn idle(&mut self, until: impl Future<Output = ()>) {
        let begin_ns = self.task.leave();
        until.await;
        self.task.back(Event::ClientMessage, begin_ns, [0; 3]).await;
    }

    /// Releases the session's core. Call this before awaiting anything other than the session's own methods.
    pub fn leave(&mut self) {
        self.task.leave();
    }

    /// Computes for `ns` nanoseconds.
    pub async fn compute(&mut self, ns: u64) {
        self.task.run(ns).await;
    }

    /// Gets a block, without changing it.
    pub async fn get(&mut self, block: u64) {
        self.tally.gets += 1;
        let buffers = self.instance.buffers();
        self.tally.reads += u64::from(buffers.get(&mut self.task, block, false).await);
    }

    /// Gets a block and changes it, which makes `redo_bytes` of redo.
    pub async fn update(&mut self, block: u64, redo_bytes: u64) {
        self.get(block).await;
        self.make(redo_bytes, Some(block), 0).await;
    }

    /// Makes redo in pieces of `piece_bytes`, each after `ns_per_piece` of CPU time, for no particular blocks.
    pub async fn change(&mut self, bytes: u64, piece_bytes: u64, ns_per_piece: u64) {
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(piece_bytes.max(1));
            self.make(piece, None, ns_per_piece * piece / piece_bytes.max(1)).await;
            left -= piece;
        }
    }

    /// Makes the redo of one change, in the private strand while it has room for it.
    async fn make(&mut self, bytes: u64, block: Option<u64>, cpu_ns: u64) {
        self.tally.redo_bytes += bytes;
        self.transaction.redo_bytes += bytes;
        let room = self.instance.parameters().redo.private_kb << 10;
        if !self.transaction.public {
            if self.transaction.private_bytes + bytes <= room {
                self.transaction.private_bytes += bytes;
                self.transaction.blocks.extend(block);
                self.task.run(cpu_ns).await;
                return;
            }
            self.publish(0).await;
            self.transaction.public = true;
        }
        let Some(block) = block else {
            self.put(bytes, cpu_ns).await;
            return;
        };
        let (redo, buffers) = (self.instance.redo().clone(), self.instance.buffers().clone());
        let strand = redo.latch(&mut self.task, self.number as usize, bytes, cpu_ns).await;
        loop {
            self.tally.reads += u64::from(buffers.hold(&mut self.task, block, true).await);
            if let Some(positions) = redo.put(strand, bytes) {
                buffers.change(block, &positions);
                return;
            }
            redo.room(&mut self.task, strand, bytes).await;
        }
    }

    /// Puts redo into the public strands, piece by piece; returns the positions of the redo.
    async fn put(&mut self, bytes: u64, cpu_ns: u64) -> Range<u64> {
        let redo = self.instance.redo().clone();
        let hold = !self.transaction.blocks.is_empty();
        let (mut left, mut cpu_ns) = (bytes, cpu_ns);
        let mut all: Option<Range<u64>> = None;
        while left > 0 {
            let piece = left.min(redo.piece_bytes());
            let strand = redo.latch(&mut self.task, self.number as usize, piece, cpu_ns).await;
            let positions = loop {
                if let Some(positions) = redo.put(strand, piece) {
                    break positions;
                }
                redo.room(&mut self.task, strand, piece).await;
            };
            if hold && all.is_none() {
                self.instance.checkpoint().hold(positions.start);
            }
            all = Some(all.map_or(positions.start, |all| all.start)..positions.end);
            (left, cpu_ns) = (left - piece, 0);
        }
        all.unwrap_or(redo.written_bytes()..redo.written_bytes())
    }

    /// Copies the redo of the private strand and `more` bytes to the public strands, and changes the blocks; returns
    /// the redo position at the end.
    async fn publish(&mut self, more: u64) -> u64 {
        let bytes = std::mem::take(&mut self.transaction.private_bytes) + more;
        let positions = self.put(bytes, 0).await;
        if !self.transaction.blocks.is_empty() {
            let buffers = self.instance.buffers().clone();
            for block in std::mem::take(&mut self.transaction.blocks) {
                self.tally.reads += u64::from(buffers.hold(&mut self.task, block, true).await);
                buffers.change(block, &positions);
            }
            self.instance.checkpoint().release(positions.start);
        }
        positions.end
    }

    /// Commits: waits until all redo of the transaction is safe; the commit is recorded as a separate call.
    pub async fn commit(&mut self, statement: u16) {
        let open = self.open(CallKind::Commit, statement);
        let redo = self.instance.redo().clone();
        let unflushed_bytes = redo.unflushed_bytes() + self.transaction.private_bytes;
        let redo_bytes = self.transaction.redo_bytes;
        let position = self.publish(self.instance.parameters().redo.commit_bytes.max(1)).await;
        redo.sync(&mut self.task, position).await;
        self.transaction = Transaction::default();
        let call = Call { redo_bytes, unflushed_bytes, ..self.over(&open, 0) };
        self.task.account().recorder().call(&call);
    }

    /// Scans blocks through the buffers.
    pub async fn scan_blocks(&mut self, blocks: Range<u64>) {
        self.tally.gets += blocks.end - blocks.start;
        let buffers = self.instance.buffers();
        self.tally.reads += buffers.scan(&mut self.task, blocks).await;
    }

    /// Scans with reads that bypass the buffers.
    pub async fn scan(&mut self, scan: &Scan) {
        let storage = self.instance.storage();
        let (event, file) = match self.instance.cell_hash() {
            Some(cell) => (Event::CellSmartTableScan, cell),
            None => (Event::DirectPathRead, DATA_FILE),
        };
        let mut pipe = Pipe::new(&storage.data, Kind::Read, event, file, scan.ahead);
        for from in (0..scan.bytes).step_by(scan.io_bytes.max(1) as usize) {
            let bytes = scan.io_bytes.min(scan.bytes - from);
            pipe.push(&mut self.task, scan.offset_bytes + from, bytes).await;
            self.task.run(scan.cpu_ns_per_io).await;
        }
        pipe.drain(&mut self.task).await;
        self.tally.reads += scan.bytes / self.instance.parameters().buffers.block_bytes;
    }

    /// Sorts; data that do not fit into memory go through temporary space.
    pub async fn sort(&mut self, what: &Sort) {
        let temp = &self.instance.storage().temp;
        let (read, write) = (Event::DirectPathReadTemp, Event::DirectPathWriteTemp);
        let mut reads = Pipe::new(temp, Kind::Read, read, TEMP_FILE, what.ahead);
        let mut writes = Pipe::new(temp, Kind::Write, write, TEMP_FILE, what.ahead);
        let base = u64::from(self.number) * what.bytes * 2;
        sort(what, base, &mut self.task, &mut reads, &mut writes).await;
    }

    /// Begins a call.
    pub fn open(&self, kind: CallKind, statement: u16) -> Open {
        let (started_ns, cpu_ns) = (self.instance.sim().now_ns(), self.task.account().cpu_ns());
        Open { kind, statement, started_ns, cpu_ns, tally: self.tally }
    }

    /// Ends a call and records it.
    pub fn close(&self, open: &Open, rows: u64) {
        self.task.account().recorder().call(&self.over(open, rows));
    }

    fn over(&self, open: &Open, rows: u64) -> Call {
        Call {
            session: self.number,
            kind: open.kind,
            statement: open.statement,
            started_ns: open.started_ns,
            elapsed_ns: self.instance.sim().now_ns() - open.started_ns,
            cpu_ns: self.task.account().cpu_ns() - open.cpu_ns,
            redo_bytes: self.tally.redo_bytes - open.tally.redo_bytes,
            unflushed_bytes: 0,
            rows,
            reads: self.tally.reads - open.tally.reads,
            gets: self.tally.gets - open.tally.gets,
        }
    }
}
