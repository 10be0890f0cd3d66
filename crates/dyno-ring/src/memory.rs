//! Memory that the kernel shares with this process: for each entry a header and a payload.

use std::cell::UnsafeCell;
use std::io;
use std::ptr::NonNull;

/// Size of a request's header (`fuse_in_header`) [bytes].
const REQUEST_HEADER: usize = 40;
/// Size of a reply's header (`fuse_out_header`) [bytes].
const REPLY_HEADER: usize = 16;
const AREA: usize = 128;

/// Header of an entry (`fuse_uring_req_header`).
#[repr(C, align(64))]
struct Header {
    in_out: [u8; AREA],
    argument: [u8; AREA],
    flags: u64,
    commit_id: u64,
    payload_bytes: u32,
    padding: u32,
    reserved: u64,
}

impl Header {
    const EMPTY: Self = Self {
        in_out: [0; AREA],
        argument: [0; AREA],
        flags: 0,
        commit_id: 0,
        payload_bytes: 0,
        padding: 0,
        reserved: 0,
    };
}

/// A request from the kernel.
#[derive(Debug)]
pub struct Request<'a> {
    /// Requested operation (`enum fuse_opcode`).
    pub opcode: u32,
    /// Request number.
    pub unique: u64,
    /// Number of the file or folder.
    pub node: u64,
    header: &'a [u8],
    argument: &'a [u8],
    /// Bytes after the argument: names, or data to write.
    pub payload: &'a [u8],
}

impl Request<'_> {
    /// Returns the 8-byte number at an offset of the argument; 0 beyond the argument's end.
    pub fn number(&self, offset: usize) -> u64 {
        self.argument.get(offset..offset + 8).map_or(0, |bytes| u64_of(bytes, 0))
    }

    /// Returns the 4-byte number at an offset of the argument; 0 beyond the argument's end.
    pub fn short_number(&self, offset: usize) -> u32 {
        self.argument.get(offset..offset + 4).map_or(0, |bytes| u32_of(bytes, 0))
    }

    /// Returns the request as it would be read from `/dev/fuse`.
    pub fn message(&self) -> Vec<u8> {
        [self.header, self.argument, self.payload].concat()
    }
}

fn u64_of(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(number)
}

fn u32_of(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(number)
}

/// Headers and payloads of all entries. Their addresses stay the same until this value is dropped.
pub struct Entries {
    headers: Box<[UnsafeCell<Header>]>,
    payloads: Pages,
    payload_bytes: usize,
    /// Two segments of each entry, as the kernel gets them.
    segments: Box<[[libc::iovec; 2]]>,
}

impl Entries {
    /// Allocates memory for `count` entries; pages that are never used take no memory.
    ///
    /// # Errors
    /// The system cannot reserve the address space.
    pub fn new(count: usize, payload_bytes: usize) -> io::Result<Self> {
        let headers: Box<[_]> = (0..count).map(|_| UnsafeCell::new(Header::EMPTY)).collect();
        let payloads = Pages::new(count * payload_bytes)?;
        let segments = (0..count)
            .map(|entry| {
                [
                    libc::iovec { iov_base: headers[entry].get().cast(), iov_len: size_of::<Header>() },
                    libc::iovec { iov_base: payloads.at(entry * payload_bytes).cast(), iov_len: payload_bytes },
                ]
            })
            .collect();
        Ok(Self { headers, payloads, payload_bytes, segments })
    }

    /// Returns the number of entries.
    pub fn count(&self) -> usize {
        self.headers.len()
    }

    /// Returns the address of an entry's segments, for its registration.
    pub fn segments(&self, entry: usize) -> u64 {
        self.segments[entry].as_ptr() as u64
    }

    /// Returns the request in an entry that the kernel has handed over.
    #[allow(unsafe_code)]
    pub fn request(&self, entry: usize) -> Request<'_> {
        // SAFETY: the kernel writes to an entry only while its thread waits in the ring, which borrows it mutably.
        let (header, payload) = unsafe { (&*self.headers[entry].get(), self.payload(entry)) };
        let payload_bytes = (header.payload_bytes as usize).min(self.payload_bytes);
        let length = u32_of(&header.in_out, 0) as usize;
        let argument_bytes = length.saturating_sub(REQUEST_HEADER + payload_bytes).min(AREA);
        Request {
            opcode: u32_of(&header.in_out, 4),
            unique: u64_of(&header.in_out, 8),
            node: u64_of(&header.in_out, 16),
            header: &header.in_out[..REQUEST_HEADER],
            argument: &header.argument[..argument_bytes],
            payload: &payload[..payload_bytes],
        }
    }

    /// Writes the reply of an entry: an error (0 for none, otherwise negative) or content. Returns the id with which
    /// the reply is committed.
    #[allow(unsafe_code)]
    pub fn reply(&mut self, entry: usize, error: i32, content: &[u8]) -> u64 {
        let start = entry * self.payload_bytes;
        let bytes = content.len().min(self.payload_bytes);
        // SAFETY: as in `request`; `&mut self` excludes other borrows of it.
        unsafe {
            let place = self.payloads.at(start);
            std::ptr::copy_nonoverlapping(content.as_ptr(), place, bytes);
        }
        let header = self.headers[entry].get_mut();
        let unique = u64_of(&header.in_out, 8);
        header.in_out[..4].copy_from_slice(&((REPLY_HEADER + bytes) as u32).to_ne_bytes());
        header.in_out[4..8].copy_from_slice(&error.to_ne_bytes());
        header.in_out[8..16].copy_from_slice(&unique.to_ne_bytes());
        header.payload_bytes = bytes as u32;
        header.commit_id
    }

    #[allow(unsafe_code)]
    unsafe fn payload(&self, entry: usize) -> &[u8] {
        let place = self.payloads.at(entry * self.payload_bytes);
        // SAFETY: the range is inside `payloads`; the caller makes sure that nobody writes to it.
        unsafe { std::slice::from_raw_parts(place, self.payload_bytes) }
    }
}

/// Pages of this process that the system allocates when they are first touched.
struct Pages {
    begin: NonNull<u8>,
    bytes: usize,
}

// SAFETY: they belong to no thread.
#[allow(unsafe_code)]
unsafe impl Send for Pages {}

impl Pages {
    #[allow(unsafe_code)]
    fn new(bytes: usize) -> io::Result<Self> {
        let (rights, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        // SAFETY: new addresses, of no file.
        let begin = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, kind, -1, 0) };
        if begin == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let begin =
            NonNull::new(begin.cast()).ok_or_else(|| io::Error::other("the system mapped pages at address 0"))?;
        Ok(Self { begin, bytes })
    }

    /// Returns the address at an offset.
    ///
    /// # Panics
    /// The offset is not inside the pages.
    #[allow(unsafe_code)]
    fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.bytes, "{offset} of {}", self.bytes);
        // SAFETY: it is inside the pages.
        unsafe { self.begin.as_ptr().add(offset) }
    }
}

impl Drop for Pages {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: nothing borrows them any longer.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
#[allow(unsafe_code, clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_the_kernels_layout() {
        assert_eq!(std::mem::offset_of!(Header, argument), 128);
        assert_eq!(std::mem::offset_of!(Header, flags), 256);
        assert_eq!(std::mem::offset_of!(Header, commit_id), 264);
        assert_eq!(std::mem::offset_of!(Header, payload_bytes), 272);
    }

    #[test]
    fn a_request_is_the_message_that_would_be_read() {
        let mut entries = Entries::new(2, 4_096).unwrap();
        let header = entries.headers[1].get_mut();
        header.in_out[..4].copy_from_slice(&(40_u32 + 24 + 3).to_ne_bytes());
        header.in_out[4..8].copy_from_slice(&16_u32.to_ne_bytes());
        header.in_out[8..16].copy_from_slice(&77_u64.to_ne_bytes());
        header.in_out[16..24].copy_from_slice(&5_u64.to_ne_bytes());
        header.argument[8..16].copy_from_slice(&8_192_u64.to_ne_bytes());
        header.payload_bytes = 3;
        let place = entries.payloads.at(4_096);
        // SAFETY: three bytes of the second payload.
        unsafe { std::ptr::copy_nonoverlapping(b"abc".as_ptr(), place, 3) };
        let request = entries.request(1);
        assert_eq!((request.opcode, request.unique, request.node), (16, 77, 5));
        assert_eq!((request.number(8), request.short_number(8), request.number(200)), (8_192, 8_192, 0));
        assert_eq!(request.payload, b"abc");
        let message = request.message();
        assert_eq!(message.len(), 67);
        assert!(message.ends_with(b"abc"));
    }

    #[test]
    fn memory_that_no_system_has_is_an_error() {
        assert!(Entries::new(1 << 20, 1 << 40).is_err());
    }

    #[test]
    fn a_reply_keeps_the_requests_number() {
        let mut entries = Entries::new(1, 4_096).unwrap();
        entries.headers[0].get_mut().in_out[8..16].copy_from_slice(&77_u64.to_ne_bytes());
        entries.headers[0].get_mut().commit_id = 9;
        assert_eq!(entries.reply(0, 0, b"content"), 9);
        let header = entries.headers[0].get_mut();
        assert_eq!((u32_of(&header.in_out, 0), u64_of(&header.in_out, 8), header.payload_bytes), (23, 77, 7));
        entries.reply(0, -5, b"");
        assert_eq!(u32_of(&entries.headers[0].get_mut().in_out, 4).cast_signed(), -5);
    }
}
