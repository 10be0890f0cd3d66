//! Part of a device that acts as a separate device, so that several databases can share a device.
//!
//! Limits: a partition only translates offsets. The device decides the order of requests, and its statistics include
//! the requests of all parts.

use std::rc::Rc;

use super::{Device, Done, Request};

/// One of several equal parts of a device.
pub struct Partition {
    of: Rc<dyn Device>,
    from_bytes: u64,
    bytes: u64,
}

impl Partition {
    /// Returns part `number` (counted from 0) of `parts` equal parts; each part begins at a whole MB.
    pub fn equal(of: Rc<dyn Device>, number: u64, parts: u64) -> Rc<Self> {
        let mb = (of.capacity_bytes() / parts.max(1)) >> 20;
        let bytes = mb.max(1) << 20;
        Rc::new(Self { of, from_bytes: number * bytes, bytes })
    }
}

impl Device for Partition {
    fn name(&self) -> &str {
        self.of.name()
    }

    fn capacity_bytes(&self) -> u64 {
        self.bytes
    }

    /// Submits a request; one that would extend beyond the end of the part is moved so that it ends there.
    fn submit(&self, mut request: Request, done: Done) {
        let last_bytes = self.bytes.saturating_sub(request.bytes);
        request.offset_bytes = self.from_bytes + (request.offset_bytes % self.bytes).min(last_bytes);
        self.of.submit(request, done);
    }

    fn below(&self) -> &[Rc<dyn Device>] {
        std::slice::from_ref(&self.of)
    }
}
