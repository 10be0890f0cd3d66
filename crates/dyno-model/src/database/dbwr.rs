//! Database writer.
//!
//! The database writer keeps up to a fixed number of writes under way. Blocks that must be written for the checkpoint
//! come first. It writes blocks of the write list when sessions wait for a buffer, or when sessions have found enough
//! dirty buffers. **Write-ahead**: a block is written only when all its redo is safe; until then it is skipped, and the
//! log writer is asked for that redo.
//!
//! When a block of the write list has been written, its buffer goes to the cold end, so that the next session reuses
//! it.

use std::rc::Rc;

use super::buffers::{BufferCache, Inner};
use super::event::Event;
use super::lru::Place;
use super::task::Task;
use crate::device::{Done, Observer, Request};
use crate::kernel::sample::whole_ns;

impl Observer for Inner {
    /// Handles the completed write of a buffer.
    fn done(&self, token: u64) {
        let buffer = token as u32;
        let mut state = self.state.borrow_mut();
        let entry = &mut state.all[buffer as usize];
        (entry.writing, entry.dirty) = (false, false);
        let dirty_from = entry.dirty_from;
        state.in_flight -= 1;
        state.dirty -= 1;
        state.counts.writes += 1;
        if matches!(state.lru.place(buffer), Place::Out | Place::Write) {
            state.lru.remove(buffer);
            state.lru.insert_coldest(buffer, self.sim.now_ns());
        }
        drop(state);
        self.checkpoint.clean(dirty_from, buffer);
        self.written.notify_all();
        self.freed.notify_one();
        self.checkpoint.post_writer();
    }
}

/// Main loop of the database writer.
pub(super) async fn run(cache: BufferCache, mut task: Task) {
    let inner = &*cache.0;
    let write_ns = whole_ns(inner.parameters.write_us * 1e3);
    let mut draining = false;
    loop {
        while inner.state.borrow().in_flight < inner.parameters.writes {
            let Some(buffer) = next(inner, &mut draining) else { break };
            {
                let mut state = inner.state.borrow_mut();
                state.all[buffer as usize].writing = true;
                state.in_flight += 1;
            }
            task.run(write_ns).await;
            write(&cache, buffer);
        }
        let in_flight = inner.state.borrow().in_flight;
        let begin_ns = task.leave();
        inner.checkpoint.posted().await;
        let (event, p1) =
            if in_flight > 0 { (Event::DbFileParallelWrite, in_flight) } else { (Event::RdbmsIpcMessage, 300) };
        task.back(event, begin_ns, [p1, 0, 0]).await;
    }
}

/// Returns the next buffer to write, if one can be written now.
fn next(inner: &Inner, draining: &mut bool) -> Option<u32> {
    let safe = inner.redo.safe();
    let mut state = inner.state.borrow_mut();
    let ready = |buffer: u32, all: &[super::buffers::Buffer]| {
        let entry = &all[buffer as usize];
        if entry.writing || !entry.dirty {
            return false;
        }
        if entry.dirty_to > safe {
            inner.redo.want(entry.dirty_to);
            return false;
        }
        true
    };
    if let Some(buffer) = inner.checkpoint.due(|buffer| ready(buffer, &state.all)) {
        return Some(buffer);
    }
    let wanted = inner.wanted.get() > 0;
    if wanted && state.lru.to_write() == 0 {
        let part = state.all.len() as f64 * inner.parameters.writer_scan_pct / 100.0;
        state.collect_dirty((part as u32).max(1));
    }
    let found = u64::from(state.lru.to_write());
    *draining = found > 0 && (*draining || wanted || found >= inner.parameters.dirty_queue);
    if !*draining {
        return None;
    }
    let buffer = state.lru.next_to_write(|buffer| ready(buffer, &state.all))?;
    state.lru.remove(buffer);
    Some(buffer)
}

fn write(cache: &BufferCache, buffer: u32) {
    let inner = &*cache.0;
    let block = inner.state.borrow().all[buffer as usize].block;
    let bytes = inner.parameters.block_bytes;
    let request = Request::write(block * bytes, bytes);
    inner.device.submit(request, Done::new(Rc::<Inner>::clone(&cache.0), u64::from(buffer)));
}
