//! Shared memory of a server, read from another process.
//!
//! The postmaster's main shared memory is one mapping, at the same address in all of its processes. Where the kernel
//! permits it (`/proc/PID/map_files`), it is mapped here read-only and a reading is a plain load. Elsewhere each
//! reading is a system call that copies from the postmaster (`process_vm_readv`).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use crate::RecordError;

/// Maximum number of addresses that the kernel copies in one call.
const PLACES_MOST: usize = 1024;
/// Size of a page [bytes].
const PAGE: u64 = 4096;
/// Reason shown if not even copies are permitted.
pub(super) const BY_RIGHT: &str = "run dbdyno as root, or as the server's own user (with kernel.yama.ptrace_scope = 0); `dbdyno \
                        doctor` says what is allowed here";

/// Memory that can be read by address; `None` outside of it.
pub trait Memory {
    /// Reads bytes at an address.
    fn read(&self, addr: u64, into: &mut [u8]) -> Option<()>;

    /// Reads a number of four bytes.
    fn u32(&self, addr: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(addr, &mut bytes).map(|()| u32::from_le_bytes(bytes))
    }

    /// Reads a number of eight bytes.
    fn u64(&self, addr: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(addr, &mut bytes).map(|()| u64::from_le_bytes(bytes))
    }
}

/// A mapping in a process's list of mappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Addresses of the mapping.
    pub range: Range<u64>,
    /// Offset in the mapped object.
    pub offset: u64,
    /// Inode of the mapped object: a server that restarts after a crash has a new one.
    pub inode: u64,
}

/// Returns the shared mapping that contains an address, from a list of mappings.
pub fn listed(maps: &str, addr: u64) -> Option<Listed> {
    maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let range = u64::from_str_radix(from, 16).ok()?..u64::from_str_radix(to, 16).ok()?;
        let is_shared = words.next()?.ends_with('s');
        let offset = u64::from_str_radix(words.next()?, 16).ok()?;
        let inode = words.nth(1)?.parse().ok()?;
        (is_shared && range.contains(&addr)).then_some(Listed { range, offset, inode })
    })
}

enum Way {
    /// Address of the mapping in this process.
    Mapped(*const u8),
    /// Process from which memory is copied.
    Copied(i32),
}

/// Identity of a server's shared memory; a server that restarts after a crash creates new memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    postmaster: i32,
    /// The mapping in the server's processes.
    pub place: Listed,
}

impl Identity {
    /// Returns true if the server still uses this memory.
    pub fn is_current(&self) -> bool {
        maps(self.postmaster).is_ok_and(|list| listed(&list, self.place.range.start).as_ref() == Some(&self.place))
    }
}

/// Shared memory of a server, released when dropped.
pub struct Shared {
    /// Identity of the memory.
    pub identity: Identity,
    way: Way,
    /// Reason why the memory is not mapped; `None` if it is mapped.
    pub unmapped: Option<String>,
}

// SAFETY: the mapping is only read, and belongs to this value alone.
unsafe impl Send for Shared {}

fn maps(pid: i32) -> io::Result<String> {
    std::fs::read_to_string(format!("/proc/{pid}/maps"))
}

/// Maps a range of a process's memory read-only.
fn mapped(pid: i32, place: &Listed) -> io::Result<*const u8> {
    let path = format!("/proc/{pid}/map_files/{:x}-{:x}", place.range.start, place.range.end);
    let file = File::open(path)?;
    let length = (place.range.end - place.range.start) as usize;
    // SAFETY: a new mapping at a place of the kernel's choice; it is read-only and lives as long as `Shared`.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            place.offset as libc::off_t,
        )
    };
    if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(base.cast_const().cast()) }
}

/// Copies four bytes at each address from a process; returns true if all were copied.
fn copied(pid: i32, places: &[u64], into: &mut [u32]) -> bool {
    places.chunks(PLACES_MOST).zip(into.chunks_mut(PLACES_MOST)).all(|(places, into)| {
        let vector = |addr: u64, len| libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: len };
        let remote: Vec<libc::iovec> = places.iter().map(|place| vector(*place, 4)).collect();
        let local = vector(into.as_mut_ptr() as u64, into.len() * 4);
        // SAFETY: the kernel writes at most `local`'s length to `into`, and only reads the other process.
        let got = unsafe { libc::process_vm_readv(pid, &raw const local, 1, remote.as_ptr(), remote.len() as u64, 0) };
        got == (into.len() * 4) as isize
    })
}

/// Copies bytes from a process's memory; returns the number of bytes that could be read, `None` if there are none.
///
/// Needs the right to trace the process, but unlike `/proc/PID/mem` not the right to read its files.
pub(crate) fn copy(pid: i32, addr: u64, into: &mut [u8]) -> Option<usize> {
    let vector = |addr: u64, len| libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: len };
    // The kernel copies each place whole or not at all: one place for each page.
    let ends = (addr / PAGE + 1..).map(|page| page.saturating_mul(PAGE));
    let (mut remote, mut from, end) = (Vec::new(), addr, addr.checked_add(into.len() as u64)?);
    for next in ends {
        remote.push(vector(from, (next.min(end) - from) as usize));
        from = next;
        if next >= end || remote.len() == PLACES_MOST {
            break;
        }
    }
    let local = vector(into.as_mut_ptr() as u64, into.len());
    // SAFETY: the kernel writes at most `into`'s length, and only reads the other process.
    let got = unsafe { libc::process_vm_readv(pid, &raw const local, 1, remote.as_ptr(), remote.len() as u64, 0) };
    usize::try_from(got).ok().filter(|got| *got > 0)
}

impl Shared {
    /// Opens the server's shared memory that contains `addr`: mapped if permitted, otherwise by copies.
    ///
    /// # Errors
    /// The address is in no shared mapping of the postmaster, or the memory cannot be read at all.
    pub fn open(postmaster: i32, addr: u64, may_map: bool) -> Result<Self, RecordError> {
        let list = maps(postmaster)
            .map_err(|error| RecordError::Unread(format!("the list of its mappings is refused ({error})"), BY_RIGHT))?;
        let place = listed(&list, addr).ok_or_else(|| {
            let said = format!("its shared memory is not where a backend says it is ({addr:#x})");
            RecordError::Unread(said, "sample the server's waits with dbdyno snap watch")
        })?;
        let first = place.range.start;
        let tried = if may_map { mapped(postmaster, &place) } else { Err(io::Error::other("copies were asked for")) };
        let (way, unmapped) = match tried {
            Ok(base) => (Way::Mapped(base), None),
            Err(error) => (Way::Copied(postmaster), Some(error.to_string())),
        };
        let made = Self { identity: Identity { postmaster, place }, way, unmapped };
        if made.u32(first).is_none() {
            let error = io::Error::last_os_error();
            return Err(RecordError::Unread(format!("its memory is refused ({error})"), BY_RIGHT));
        }
        Ok(made)
    }

    /// Returns true if the memory is mapped, false if it is copied.
    pub fn is_mapped(&self) -> bool {
        matches!(self.way, Way::Mapped(_))
    }

    fn range(&self) -> &Range<u64> {
        &self.identity.place.range
    }

    /// Returns true if an address is in the memory.
    pub fn contains(&self, addr: u64) -> bool {
        self.range().contains(&addr)
    }

    fn holds(&self, addr: u64, bytes: usize) -> bool {
        addr >= self.range().start && addr.checked_add(bytes as u64).is_some_and(|end| end <= self.range().end)
    }

    /// Reads four bytes at each address, in one system call if the memory is copied; returns true if all were read.
    ///
    /// A place outside of the memory, or one that is no multiple of four, is refused.
    #[allow(clippy::cast_ptr_alignment)] // checked: the mapping begins at a page, and the places are even
    pub fn gather(&self, places: &[u64], into: &mut [u32]) -> bool {
        let Way::Mapped(base) = self.way else {
            return self.copy_all(places, into);
        };
        if !places.iter().all(|place| place.is_multiple_of(4) && self.holds(*place, 4)) {
            return false;
        }
        for (place, value) in places.iter().zip(into) {
            // SAFETY: inside the mapping, as checked above; the server writes such words whole.
            *value = unsafe { base.add((place - self.range().start) as usize).cast::<u32>().read_volatile() };
        }
        true
    }

    fn copy_all(&self, places: &[u64], into: &mut [u32]) -> bool {
        let Way::Copied(pid) = self.way else { return false };
        places.is_empty() || copied(pid, places, into)
    }
}

impl Memory for Shared {
    fn read(&self, addr: u64, into: &mut [u8]) -> Option<()> {
        if !self.holds(addr, into.len()) {
            return None;
        }
        match self.way {
            Way::Mapped(base) => {
                // SAFETY: the mapping has this many bytes there. Another process may write them meanwhile: whoever
                // needs them consistent compares a change count.
                unsafe {
                    let from = base.add((addr - self.range().start) as usize);
                    std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len());
                }
                std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
                Some(())
            }
            Way::Copied(pid) => (copy(pid, addr, into) == Some(into.len())).then_some(()),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Way::Mapped(base) = self.way {
            let length = (self.range().end - self.range().start) as usize;
            // SAFETY: the mapping was made by this value, and nothing refers to it any more.
            unsafe { libc::munmap(base as *mut libc::c_void, length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Listed, copy, listed};

    const MAPS: &str = "\
55e0-55f0 r-xp 00000000 08:01 77 /usr/lib/postgresql/15/bin/postgres
7f10-7f20 rw-p 00000000 00:00 0
7f20-7f90 rw-s 00000000 00:01 4711 /dev/zero (deleted)
7f90-7fa0 rw-s 00000000 00:16 12 /dev/shm/PostgreSQL.1
";

    #[test]
    fn memory_is_copied_over_the_ends_of_pages_up_to_the_first_that_does_not_exist() {
        let (own, bytes) = (std::process::id() as i32, (0..20_001_u32).map(|at| at as u8).collect::<Vec<_>>());
        let mut into = vec![0; bytes.len()];
        assert_eq!(copy(own, bytes.as_ptr() as u64, &mut into), Some(bytes.len()));
        assert_eq!(into, bytes);
        assert_eq!(copy(own, 8, &mut into), None);
        // SAFETY: a new mapping of two pages, of which the second is unmapped.
        let end = unsafe {
            let (kind, access) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
            let base = libc::mmap(std::ptr::null_mut(), 8192, access, kind, -1, 0);
            libc::munmap(base.byte_add(4096), 4096);
            base as u64 + 4096
        };
        assert_eq!(copy(own, end - 100, &mut into), Some(100));
    }

    #[test]
    fn the_shared_mapping_is_the_one_that_holds_the_address_and_is_known_by_its_inode() {
        assert_eq!(listed(MAPS, 0x7f8f), Some(Listed { range: 0x7f20..0x7f90, offset: 0, inode: 4711 }));
        assert_eq!(listed(MAPS, 0x7f90).map(|found| found.inode), Some(12));
    }

    #[test]
    fn private_memory_and_addresses_of_no_mapping_are_not_shared_memory() {
        assert_eq!(listed(MAPS, 0x7f18), None);
        assert_eq!(listed(MAPS, 0x9000), None);
        assert_eq!(listed("nonsense", 0x9000), None);
    }
}
