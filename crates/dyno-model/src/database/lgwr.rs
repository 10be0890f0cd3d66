//! Log writer.
//!
//! The log writer gathers all redo in the buffer when a commit waits, when a third of the buffer or 1 MB is filled,
//! when the database writer needs redo to be safe, or when 3 s have passed with redo in the buffer. A trigger counts
//! only while the log writer is idle; commits that arrive during a write are part of the next one, which is group
//! commit.
//!
//! A write consists of whole blocks: each has a header of 16 bytes, and the unused rest of the last block is wasted. A
//! write goes to all members of the log group and is split if it is longer than the longest single write; the slowest
//! member determines the time. Then the sessions whose redo is safe are posted one by one, in order of arrival, and
//! each post costs CPU time.
//!
//! A log switch waits for the checkpoint to leave the next file, then updates the control file.

use super::event::Event;
use super::io::Batch;
use super::log_files::HEADER_BYTES;
use super::redo::Redo;
use super::task::Task;
use crate::device::Request;
use crate::kernel::sample::whole_ns;

/// Block size of a control file.
const CONTROL_BYTES: u64 = 16_384;

/// Main loop of the log writer.
pub(super) async fn run(redo: Redo, mut task: Task) {
    let gather_ns = whole_ns(redo.0.parameters.gather_us * 1e3);
    let post_ns = whole_ns(redo.0.parameters.post_us * 1e3);
    loop {
        sleep(&redo, &mut task).await;
        task.run(gather_ns).await;
        let bytes = redo.gather();
        if bytes > 0 {
            write(&redo, &mut task, bytes).await;
            let was_safe = redo.safe();
            redo.settle();
            let target = redo.0.log.borrow_mut().checkpoint_target();
            redo.0.checkpoint.raise(target);
            if redo.0.wanted.get() > was_safe {
                redo.0.checkpoint.post_writer();
            }
        }
        post(&redo, &mut task, post_ns).await;
        if redo.0.switch_wanted.get() && redo.0.written.get() == redo.0.safe.get() {
            switch(&redo, &mut task).await;
        }
    }
}

/// Sleeps until a write is due or the timeout has passed; as long as the buffer is empty, there is no timeout.
async fn sleep(redo: &Redo, task: &mut Task) {
    if redo.is_due() {
        return;
    }
    let inner = &*redo.0;
    let timeout_ns = whole_ns(inner.parameters.timeout_s * 1e9);
    let begin_ns = task.leave();
    let mut deadline_ns = None;
    while !redo.is_due() {
        if inner.written.get() == inner.gathered.get() {
            deadline_ns = None;
            inner.posted.wait().await;
            continue;
        }
        let until_ns = *deadline_ns.get_or_insert(inner.sim.now_ns() + timeout_ns);
        if !inner.posted.wait_until(until_ns).await {
            break;
        }
    }
    task.back(Event::RdbmsIpcMessage, begin_ns, [timeout_ns / 10_000_000, 0, 0]).await;
}

async fn write(redo: &Redo, task: &mut Task, redo_bytes: u64) {
    let inner = &*redo.0;
    let block_bytes = inner.parameters.block_bytes;
    let longest = (inner.parameters.write_kb << 10).max(block_bytes);
    let (blocks, at) = {
        let mut log = inner.log.borrow_mut();
        let blocks = log.blocks(redo_bytes);
        (blocks, log.take(blocks, inner.gathered.get()))
    };
    let bytes = blocks * block_bytes;
    let begin_ns = task.leave();
    let batch = Batch::new(&inner.sim);
    for member in &inner.members {
        for from in (0..bytes).step_by(longest as usize) {
            batch.submit(&**member, Request::write(at + from, longest.min(bytes - from)));
        }
    }
    batch.all_done().await;
    let files = inner.members.len() as u64;
    let p = [files, files * blocks, files * bytes.div_ceil(longest)];
    task.back(Event::LogFileParallelWrite, begin_ns, p).await;
    let mut counts = inner.counts.get();
    counts.writes += 1;
    counts.blocks += blocks;
    counts.redo_bytes += redo_bytes;
    counts.wasted_bytes += blocks * (block_bytes - HEADER_BYTES) - redo_bytes;
    inner.counts.set(counts);
}

/// Posts the sessions whose redo is safe, in order.
async fn post(redo: &Redo, task: &mut Task, post_ns: u64) {
    let inner = &*redo.0;
    let safe = inner.safe.get();
    let next = || {
        let mut positions = inner.positions.borrow_mut();
        let is_safe = positions.front().is_some_and(|&position| position <= safe);
        is_safe && positions.pop_front().is_some()
    };
    while next() {
        task.run(post_ns).await;
        inner.synced.notify_one();
    }
}

async fn switch(redo: &Redo, task: &mut Task) {
    let inner = &*redo.0;
    let needed = inner.log.borrow().next_needs();
    let incomplete = inner.checkpoint.position() < needed;
    inner.incomplete.set(incomplete);
    if incomplete {
        let begin_ns = task.leave();
        inner.checkpoint.raise(needed);
        inner.checkpoint.reached(needed).await;
        task.back(Event::LogFileSwitchCheckpoint, begin_ns, [0; 3]).await;
    }
    for at in 0..inner.parameters.switch_writes {
        let begin_ns = task.leave();
        let batch = Batch::new(&inner.sim);
        batch.submit(&*inner.control, Request::write(at * CONTROL_BYTES, CONTROL_BYTES));
        batch.all_done().await;
        task.back(Event::ControlFileParallelWrite, begin_ns, [1, 1, 1]).await;
    }
    inner.log.borrow_mut().switch(inner.safe.get());
    inner.switch_wanted.set(false);
    let mut counts = inner.counts.get();
    counts.switches += 1;
    counts.incomplete += u64::from(incomplete);
    inner.counts.set(counts);
    inner.switched.notify_all();
}
