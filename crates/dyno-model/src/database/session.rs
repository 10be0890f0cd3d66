//! A session: thinks, computes, makes redo, commits.

use super::redo::Redo;
use super::wait::{Account, Event, Ledger, Sink};
use crate::kernel::{Resource, Sim};

/// A session. Its steps account for every nanosecond.
pub struct Session {
    sim: Sim,
    cores: Resource,
    redo: Redo,
    account: Account,
    commits: u64,
}

impl Session {
    /// A session that begins now; numbers from 1, 0 is the log writer.
    pub fn new(sim: &Sim, number: u64, cores: &Resource, redo: &Redo, sink: Sink) -> Self {
        let account = Account::new(number, sim.now_ns(), sink);
        Self { sim: sim.clone(), cores: cores.clone(), redo: redo.clone(), account, commits: 0 }
    }

    /// The client thinks.
    pub async fn think(&mut self, ns: u64) {
        let begin_ns = self.sim.now_ns();
        self.sim.hold(ns).await;
        self.account.wait(Event::ClientMessage, begin_ns, self.sim.now_ns(), [0; 3]);
    }

    /// The client has been silent since then.
    pub fn idle_since(&mut self, begin_ns: u64) {
        self.account.wait(Event::ClientMessage, begin_ns, self.sim.now_ns(), [0; 3]);
    }

    /// Computes for so long, as soon as there is a core.
    pub async fn compute(&mut self, ns: u64) {
        let begin_ns = self.sim.now_ns();
        let _core = self.cores.acquire().await;
        self.account.wait(Event::CpuQueue, begin_ns, self.sim.now_ns(), [0; 3]);
        self.sim.hold(ns).await;
        self.account.cpu(ns);
    }

    /// Makes redo in pieces of `piece_bytes`, each after so much CPU.
    pub async fn change(&mut self, bytes: u64, piece_bytes: u64, ns_per_piece: u64) {
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(piece_bytes);
            self.compute(ns_per_piece * piece / piece_bytes).await;
            self.redo.put(piece, &self.account).await;
            left -= piece;
        }
    }

    /// Commits: a record of `bytes`, then until all redo so far is safe and there is a core again.
    pub async fn commit(&mut self, bytes: u64) {
        self.redo.put(bytes, &self.account).await;
        let begin_ns = self.sim.now_ns();
        self.redo.sync().await;
        // The wait ends when the session runs, not when it was posted.
        drop(self.cores.acquire().await);
        self.commits += 1;
        self.account.wait(Event::LogFileSync, begin_ns, self.sim.now_ns(), [0, self.commits, 0]);
    }

    /// What it did with its time.
    pub fn ledger(&self) -> Ledger {
        self.account.ledger()
    }
}
