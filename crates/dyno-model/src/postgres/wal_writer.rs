//! The log writer: writes the log of commits that do not wait for it.
//!
//! An asynchronous commit wakes it if the log has a page beyond the last sync (`XLogSetAsyncXactLSN`). It then writes
//! all complete pages, but it syncs only once it has written a given amount of log, or its interval has passed
//! (`XLogBackgroundFlush`). Meanwhile it holds the log's lock, like any process that flushes.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::process::{Process, Wait};
use super::wal::Wal;
use crate::kernel::sample::whole_ns;

impl Wal {
    /// Records a commit that does not wait for its log, and wakes the log writer if there is a page to write.
    pub async fn leave_to_writer(&self, process: &Process, background: &Process, record: u64) {
        let (inner, writer) = (&*self.0, &self.0.writer);
        writer.commit.set(writer.commit.get().max(record));
        let complete = record / inner.page_bytes * inner.page_bytes;
        let beyond = complete.saturating_sub(inner.flushed.get());
        if writer.wake_bytes == 0 || beyond == 0 || beyond + inner.page_bytes <= writer.wake_bytes {
            return;
        }
        // One that still works looks again before it sleeps.
        if !writer.woken.replace(true)
            && let Some(sleeping) = writer.sleeping.take()
        {
            let idle = background.wake(Some(process));
            inner.sim.wake(sleeping);
            process.run(if idle { inner.wake_ns } else { 0 }).await;
        }
    }

    /// Main loop of the log writer. Wake-ups at the end of an interval that would find nothing to do are not simulated.
    pub async fn write_in_background(self, process: Process, delay_ms: f64) {
        let (inner, writer) = (&*self.0, &self.0.writer);
        let delay_ns = whole_ns(delay_ms * 1e6).max(1);
        let mut synced_ns = 0;
        loop {
            let called = self.rest(delay_ns).await;
            let woken = writer.woken.take();
            let now_ns = inner.sim.now_ns();
            let (upto, syncs) = self.due(now_ns - synced_ns >= delay_ns);
            if !woken && upto <= inner.written.get() && !syncs {
                continue;
            }
            if !called {
                process.wake(None);
            }
            process.start(Wait::CpuQueue, now_ns, 0).await;
            process.run(inner.latch_ns).await;
            self.write_behind(&process, upto, syncs).await;
            if syncs {
                synced_ns = now_ns;
            }
            process.leave();
        }
    }

    /// Returns the position up to which the log writer writes, and whether it syncs; `late` is true if its interval has
    /// passed.
    fn due(&self, late: bool) -> (u64, bool) {
        let (inner, writer) = (&*self.0, &self.0.writer);
        let (page, flushed) = (inner.page_bytes, inner.flushed.get());
        let complete = inner.inserted.get() / page * page;
        let upto = if complete > flushed { complete } else { writer.commit.get() };
        let syncs = upto > flushed && (late || upto - flushed / page * page >= writer.flush_bytes);
        (upto, syncs)
    }

    async fn write_behind(&self, process: &Process, upto: u64, syncs: bool) {
        let inner = &*self.0;
        if upto <= inner.written.get() && !syncs {
            return;
        }
        while inner.held.get() {
            self.sleep(process, upto, 0).await;
        }
        inner.held.set(true);
        self.write(process, upto).await;
        if syncs && inner.flushed.get() < upto {
            self.sync(process).await;
        }
        self.release(process).await;
    }

    /// Sleeps until a commit wakes the log writer, or its interval has passed; returns true if a commit woke it from
    /// sleep, so that it waits for a core.
    async fn rest(&self, delay_ns: u64) -> bool {
        let (inner, writer) = (&*self.0, &self.0.writer);
        if writer.woken.get() {
            return false;
        }
        writer.sleeping.set(Some(inner.sim.running()));
        let mut hold = pin!(inner.sim.hold(delay_ns));
        poll_fn(|context| if writer.woken.get() { Poll::Ready(()) } else { hold.as_mut().poll(context) }).await;
        writer.sleeping.take().is_none()
    }
}
