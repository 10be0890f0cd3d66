//! Mutual exclusion of probes and watchpoints on one program: a kernel may lose track of a process that has both.
//!
//! Probes belong to the program file and so to all servers that run it. A recorder therefore puts a lock on that file
//! that says whether it uses probes or watchpoints, and then looks for locks of the other kind. If two recorders
//! start at the same time, both see the other's lock. A lock ends with its process, however that ends. The locks are
//! shared locks on bytes far beyond the end of the file, so they block nobody else. Other tools' tracers set no locks.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::process;

/// Technique of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Probes beside the store instructions that publish waits.
    Sites,
    /// Watchpoints.
    Watch,
}

impl Means {
    /// Returns the position of the byte that represents this technique.
    fn place(self) -> i64 {
        const BEHIND: i64 = 1 << 60;
        BEHIND + i64::from(self == Self::Watch)
    }

    fn other(self) -> Self {
        if self == Self::Watch { Self::Sites } else { Self::Watch }
    }
}

/// Lock of a recorder on the program file, held until it is dropped.
#[derive(Debug)]
pub struct Claim {
    _file: Option<File>,
}

impl Claim {
    /// Claims the program of a server; returns `None` if another recorder uses the other technique on it.
    ///
    /// On a file system without locks other recorders cannot be seen.
    pub fn of(postmaster: i32, means: Means) -> Option<Self> {
        let Ok(file) = File::open(process::program(postmaster)) else { return Some(Self { _file: None }) };
        let is_kept = lock(&file, libc::F_OFD_SETLK, libc::F_RDLCK, means).is_ok();
        let other = lock(&file, libc::F_OFD_GETLK, libc::F_WRLCK, means.other());
        let is_taken = other.is_ok_and(|kind| kind != libc::F_UNLCK);
        (!is_taken).then(|| Self { _file: is_kept.then_some(file) })
    }
}

/// Sets a lock, or queries which lock conflicts with it; returns the kind of lock that the kernel reports.
fn lock(file: &File, command: i32, kind: i32, means: Means) -> io::Result<i32> {
    let mut one = libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: means.place(),
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the lock structure is valid during the call, and the call uses no other memory.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut one) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(i32::from(one.l_type)) }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Means};

    #[test]
    fn recorders_of_one_means_stand_side_by_side_and_those_of_the_other_wait_until_all_are_gone() {
        let own = std::process::id() as i32;
        for means in [Means::Sites, Means::Watch] {
            let first = Claim::of(own, means).expect("nobody is there");
            let second = Claim::of(own, means).expect("the same means");
            assert!(Claim::of(own, means.other()).is_none());
            drop(first);
            assert!(Claim::of(own, means.other()).is_none());
            drop(second);
            assert!(Claim::of(own, means.other()).is_some());
        }
    }
}
