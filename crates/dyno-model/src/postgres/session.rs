//! A session: its client sends a statement, its server process executes it, and so on until the transaction ends.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::counts::Counts;
use super::files::Files;
use super::load::{Load, Lock, Step};
use super::parameters::{PostgresParameters, Statement};
use super::process::{Process, Wait};
use super::rows::{Row, Rows};
use super::turns::Turns;
use super::wal::Wal;
use crate::kernel::sample::whole_ns;
use crate::kernel::{Permit, Resource, Sim, Stream};

/// Size of a commit record in the log: header of 24 bytes, 2 for the data length, 8 for the time, aligned
/// (`XLogRecord`, `xl_xact_commit`).
const COMMIT_RECORD_BYTES: u64 = 40;

/// A step with its costs.
pub(super) struct Prepared {
    pub cpu_ns: f64,
    /// Sizes of the log that the step inserts, one of which is drawn [bytes].
    pub wal_bytes: Vec<u64>,
    pub lock: Option<Lock>,
    pub commits: bool,
    pub pause_ns: u64,
    pub io: Option<Io>,
}

/// I/Os of a step.
pub(super) struct Io {
    reads: Counts,
    /// Mean number of reads with the machine's number of buffers.
    reads_mean: f64,
    /// Number of blocks that may have to be read.
    references: u64,
    writes: Counts,
    temp_reads: Counts,
    temp_writes: Counts,
}

impl Io {
    /// Returns the I/Os of a statement that reads this many blocks on average; `None` if the statement has no I/Os.
    fn new(statement: &Statement, reads_mean: f64) -> Option<Self> {
        let Statement { reads, writes, temp_reads, temp_writes, touches, .. } = statement;
        let none = reads_mean <= 0.0 && [writes, temp_reads, temp_writes].iter().all(|own| own.is_empty());
        (!none).then(|| Self {
            reads: reads.clone(),
            reads_mean,
            references: touches.len() as u64,
            writes: writes.clone(),
            temp_reads: temp_reads.clone(),
            temp_writes: temp_writes.clone(),
        })
    }
}

impl Prepared {
    /// Returns a step with its costs, given the mean number of reads of each statement. If the step has no sizes, it
    /// inserts the log volume of its statement.
    pub fn new(step: &Step, parameters: &PostgresParameters, reads: &[f64]) -> Self {
        let statement = &parameters.statements[step.statement];
        let own = vec![statement.wal_bytes.round() as u64];
        Self {
            cpu_ns: statement.cpu_us() * parameters.cpu_factor * 1e3,
            wal_bytes: if step.wal_bytes.is_empty() { own } else { step.wal_bytes.clone() },
            lock: step.lock.clone(),
            commits: step.commits,
            pause_ns: whole_ns(step.pause_us * 1e3),
            io: Io::new(statement, reads[step.statement]),
        }
    }
}

/// Numbers and times of completed transactions.
#[derive(Default)]
pub(super) struct Progress {
    pub done: Cell<u64>,
    pub counts: Cell<bool>,
    pub latencies_ns: RefCell<Vec<u64>>,
}

/// State that all sessions of a server share.
pub(super) struct Shared {
    pub sim: Sim,
    pub parameters: PostgresParameters,
    pub wal: Wal,
    pub log_writer: Process,
    /// `MariaDB`'s binary log.
    pub binlog: Option<Wal>,
    pub rows: Rows,
    pub files: Files,
    pub turns: Turns,
    pub scripts: Vec<(u64, Vec<Prepared>)>,
    pub progress: Progress,
}

/// A client thread with its process; its sessions take turns.
#[derive(Clone)]
pub(super) struct Thread {
    pub turn: Resource,
    pub process: Process,
}

impl Thread {
    /// Ends a turn: the thread continues with the next ready session, or sleeps.
    ///
    /// Before it sleeps it computes for `tail_ns`.
    pub fn end(&self, turn: Permit, tail_ns: u64) {
        if self.turn.queue_len() == 0 {
            self.process.sleep_after(tail_ns);
        }
        drop(turn);
    }
}

/// A session with its random streams.
pub(super) struct Session {
    pub shared: Rc<Shared>,
    pub thread: Thread,
    pub server: Process,
    pub streams: Streams,
    pub number: u32,
    /// Last delay of a round trip [ns]; 0 at first.
    pub last_delay_ns: u64,
}

/// Random streams of a session, one for each purpose.
pub(super) struct Streams {
    pub cpu: Stream,
    pub delay: Stream,
    pub rows: Stream,
    pub sizes: Stream,
    pub think: Stream,
    pub script: Stream,
    pub wake: Stream,
    pub io: Stream,
}

impl Streams {
    /// Returns the streams of a session.
    pub fn new(sim: &Sim, session: u32) -> Self {
        let of = |purpose: &str| sim.stream(&format!("postgres session {session}/{purpose}"));
        Self {
            cpu: of("cpu"),
            delay: of("delay"),
            rows: of("rows"),
            sizes: of("sizes"),
            think: of("think"),
            script: of("script"),
            wake: of("wake"),
            io: of("io"),
        }
    }
}

/// An open transaction.
#[derive(Default)]
struct Open {
    rows: Vec<Row>,
    /// End of the transaction's last log record; 0 if the transaction has inserted nothing.
    record: u64,
    /// Amount of log that the transaction has inserted [bytes].
    bytes: u64,
}

impl Session {
    /// Runs transactions endlessly. Without think time, the next one starts before the session releases the client
    /// thread.
    pub async fn live(mut self) {
        let shared = Rc::clone(&self.shared);
        let all: u64 = shared.scripts.iter().map(|(weight, _)| weight).sum();
        let mut turn = None;
        loop {
            let think_ns = shared.parameters.think.sample_ns(&mut self.streams.think);
            if think_ns > 0 {
                turn.take().into_iter().for_each(|turn| self.thread.end(turn, 0));
                shared.sim.hold(think_ns).await;
            }
            if shared.turns.is_over() {
                turn.take().into_iter().for_each(|turn| self.thread.end(turn, 0));
                shared.turns.next().await;
                self.thread.process.move_anywhere();
            }
            let mut drawn = self.streams.script.below(all);
            let script = shared.scripts.iter().find(|(weight, _)| {
                let found = drawn < *weight;
                drawn = drawn.saturating_sub(*weight);
                found
            });
            let begin_ns = shared.sim.now_ns();
            let steps: &[Prepared] = script.map_or(&[], |(_, steps)| steps.as_slice());
            turn = self.transaction(steps, turn).await;
            let progress = &shared.progress;
            progress.done.set(progress.done.get() + 1);
            if progress.counts.get() {
                progress.latencies_ns.borrow_mut().push(shared.sim.now_ns() - begin_ns);
            }
        }
    }

    /// Runs a transaction in the current turn of the client thread, or in its next one; returns the turn in which it
    /// ends.
    async fn transaction(&mut self, steps: &[Prepared], turn: Option<Permit>) -> Option<Permit> {
        let shared = Rc::clone(&self.shared);
        let tail_ns = whole_ns(shared.parameters.tail_us.min(shared.parameters.client_us) * 1e3);
        let half_ns = whole_ns(shared.parameters.client_us * 1e3).saturating_sub(tail_ns) / 2;
        let client_cold_ns = whole_ns(shared.parameters.client_cold_us * 1e3);
        let mut open = Open::default();
        let mut turn = turn;
        for step in steps {
            if step.pause_ns > 0 {
                turn.take().into_iter().for_each(|turn| self.thread.end(turn, 0));
                shared.sim.hold(step.pause_ns).await;
            }
            let own = match turn.take() {
                Some(own) => own,
                None => self.thread.turn.acquire().await,
            };
            self.thread.process.run(half_ns).await;
            self.draw_delay();
            let idle = self.server.wake(Some(&self.thread.process));
            let begin_ns = shared.sim.now_ns();
            let wake_ns = if idle { whole_ns(shared.parameters.client_wake_us * 1e3) } else { 0 };
            if self.thread.turn.queue_len() > 0 {
                self.thread.process.run(wake_ns).await;
                self.thread.end(own, tail_ns);
            } else {
                self.thread.end(own, tail_ns + wake_ns);
            }
            // The core starts meanwhile.
            let left_ns = self.start_ns(idle).saturating_sub(shared.sim.now_ns() - begin_ns);
            self.server.start(Wait::Client, shared.sim.now_ns(), left_ns).await;
            turn = Some(self.serve(step, &mut open).await);
            let cold_ns = if self.thread.process.take_cold() { client_cold_ns } else { 0 };
            self.thread.process.run(half_ns + cold_ns).await;
        }
        turn
    }

    /// Draws the delay of a round trip, which sometimes equals the last one, because a busy machine stays busy for a
    /// while.
    fn draw_delay(&mut self) {
        let parameters = &self.shared.parameters;
        if self.last_delay_ns == 0 || !self.streams.wake.chance(parameters.delay_memory) {
            self.last_delay_ns = parameters.delay.sample_ns(&mut self.streams.delay);
        }
    }

    /// Returns the time that a woken process takes to start [ns]: half of the round trip's delay on an idle core; 0 on
    /// a busy core, which only switches to the process.
    fn start_ns(&self, idle: bool) -> u64 {
        let half = self.last_delay_ns as f64 * self.shared.parameters.delay_factor / 2.0;
        if idle { whole_ns(half) } else { 0 }
    }

    /// Executes a statement in the woken server process, and wakes the client thread unless it is busy; returns the
    /// client's turn.
    async fn serve(&mut self, step: &Prepared, open: &mut Open) -> Permit {
        let shared = Rc::clone(&self.shared);
        let bytes = drawn(&step.wal_bytes, &mut self.streams.sizes);
        let tail_ns = (shared.parameters.tail_us * 1e3).min(step.cpu_ns);
        let insert_ns = bytes as f64 / 1_024.0 * shared.parameters.insert_us_per_kb * 1e3;
        self.compute(step.cpu_ns - tail_ns + insert_ns).await;
        let tail_ns = whole_ns(tail_ns);
        if let Some(io) = &step.io {
            self.transfer(io).await;
        }
        if let Some(lock) = &step.lock {
            self.lock(lock, open).await;
        }
        if bytes > 0 {
            shared.wal.make_room(&self.server, bytes).await;
            if open.record == 0 {
                shared.wal.writing(1);
            }
            open.record = shared.wal.insert(bytes);
            open.bytes += bytes;
        }
        if step.commits {
            self.commit(open).await;
        }
        let thread = self.thread.clone();
        let Some(turn) = thread.turn.try_acquire() else {
            self.server.sleep_after(tail_ns);
            return thread.turn.acquire().await;
        };
        let idle = thread.process.wake(Some(&self.server));
        let wake_ns = if idle { whole_ns(shared.parameters.wake_us * 1e3) } else { 0 };
        self.server.sleep_after(tail_ns + wake_ns);
        thread.process.start(Wait::CpuQueue, shared.sim.now_ns(), self.start_ns(idle)).await;
        turn
    }

    async fn compute(&mut self, mean_ns: f64) {
        if mean_ns > 0.0 {
            let sigma = self.shared.parameters.cpu_sigma;
            // The median of a lognormal distribution is below its mean, which is what was measured.
            let median_ns = mean_ns * libm::exp(-sigma * sigma / 2.0);
            self.server.run(whole_ns(self.streams.cpu.lognormal(median_ns, sigma))).await;
        }
    }

    /// Reads and writes the blocks of a statement.
    async fn transfer(&mut self, io: &Io) {
        let shared = Rc::clone(&self.shared);
        let dice = &mut self.streams.io;
        let reads = io.reads.draw(io.reads_mean, io.references, dice);
        let writes = io.writes.draw(io.writes.mean(), 0, dice);
        let spilled =
            (io.temp_writes.draw(io.temp_writes.mean(), 0, dice), io.temp_reads.draw(io.temp_reads.mean(), 0, dice));
        shared.files.write(&self.server, writes, dice).await;
        shared.files.read(&self.server, reads, dice).await;
        shared.files.spill(&self.server, self.number, spilled, dice).await;
    }

    async fn lock(&mut self, lock: &Lock, open: &mut Open) {
        let shared = Rc::clone(&self.shared);
        let row = (lock.table, drawn(&lock.rows, &mut self.streams.rows));
        if open.rows.contains(&row) {
            return;
        }
        while !shared.rows.try_lock(row) {
            let writes = i64::from(open.record > 0);
            shared.wal.writing(-writes);
            let begin_ns = self.server.leave();
            let (idle, others) = shared.rows.wait(row, &self.server).await;
            self.server.start(Wait::Row, begin_ns, self.start_ns(idle)).await;
            if let Some(others) = others {
                // The next one checks its version of the row as well.
                others.wake_first(&self.server);
            }
            shared.wal.writing(writes);
            self.server.run(whole_ns(shared.parameters.lock_us * 1e3)).await;
        }
        open.rows.push(row);
    }

    async fn commit(&mut self, open: &mut Open) {
        let shared = Rc::clone(&self.shared);
        if open.record > 0 {
            shared.wal.commit();
            open.record = shared.wal.insert(COMMIT_RECORD_BYTES);
            if shared.parameters.synchronous_commit {
                shared.wal.flush(&self.server, open.record, self.start_ns(true)).await;
            } else {
                shared.wal.leave_to_writer(&self.server, &shared.log_writer, open.record).await;
            }
            shared.wal.writing(-1);
            if let Some(binlog) = &shared.binlog {
                self.server.run(whole_ns(shared.parameters.binlog_us * 1e3)).await;
                // Its events are about as large as the log of the changes.
                let position = binlog.insert(open.bytes);
                binlog.flush(&self.server, position, self.start_ns(true)).await;
            }
        }
        shared.rows.release(&mut open.rows, &self.server);
    }
}

/// Returns one of several values at random; there must be at least one.
fn drawn(values: &[u64], dice: &mut Stream) -> u64 {
    if let [only] = values { *only } else { values[dice.below(values.len() as u64) as usize] }
}

/// Returns the number of client threads: the configured number or, if that is 0, the number that dbdyno's load
/// generator uses.
pub(super) fn threads(parameters: &PostgresParameters, load: &Load) -> u64 {
    let sessions = u64::from(load.sessions);
    match parameters.client_threads {
        0 if sessions <= 2 * parameters.cores => sessions,
        0 => parameters.cores,
        given => given.min(sessions),
    }
}
