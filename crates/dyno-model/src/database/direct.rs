//! I/O that bypasses the buffers, with several requests in parallel: scans and temporary space.

use std::collections::VecDeque;
use std::rc::Rc;

use super::event::Event;
use super::task::Task;
use crate::device::{Device, Io, Kind, Request, start};

/// Size of the blocks that p2 and p3 of the waits refer to.
const BLOCK_BYTES: u64 = 8_192;

/// File that is read or written with several I/Os in parallel.
pub(super) struct Pipe {
    device: Rc<dyn Device>,
    kind: Kind,
    event: Event,
    file: u64,
    ahead: usize,
    open: VecDeque<(Io, [u64; 3])>,
}

impl Pipe {
    /// Returns a file without I/O under way.
    pub fn new(device: &Rc<dyn Device>, kind: Kind, event: Event, file: u64, ahead: u64) -> Self {
        let device = Rc::clone(device);
        Self { device, kind, event, file, ahead: ahead.max(1) as usize, open: VecDeque::new() }
    }

    /// Starts one more I/O; waits for the oldest if the limit is reached.
    pub async fn push(&mut self, task: &mut Task, offset_bytes: u64, bytes: u64) {
        let request = Request { kind: self.kind, offset_bytes, bytes };
        let io = start(task.sim(), &*self.device, request);
        let p = if self.event == Event::CellSmartTableScan {
            [self.file, 0, 0]
        } else {
            [self.file, offset_bytes / BLOCK_BYTES, bytes.div_ceil(BLOCK_BYTES)]
        };
        self.open.push_back((io, p));
        if self.open.len() >= self.ahead {
            self.oldest(task).await;
        }
    }

    /// Waits for all I/O under way.
    pub async fn drain(&mut self, task: &mut Task) {
        while !self.open.is_empty() {
            self.oldest(task).await;
        }
    }

    async fn oldest(&mut self, task: &mut Task) {
        if let Some((io, p)) = self.open.pop_front() {
            let begin_ns = task.leave();
            io.await;
            task.back(self.event, begin_ns, p).await;
        }
    }
}
