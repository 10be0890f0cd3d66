//! Probes and watchpoints never on one process: a kernel may lose track where they meet there.
//!
//! Probes belong to the program file and so to all servers that run it. So a recorder says on that file by which means it
//! works, with a lock that ends with its process, however that ends, and then looks for locks of the other means. Two that
//! come at once both see the other. The locks are notes (shared, on bytes far behind the file's end) and stop nobody else;
//! other tools' tracers set none.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::process;

/// By which means a recorder works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Probes.
    Sites,
    /// Watchpoints.
    Watch,
}

impl Means {
    /// The byte that stands for it.
    fn place(self) -> i64 {
        const BEHIND: i64 = 1 << 60;
        BEHIND + i64::from(self == Self::Watch)
    }

    fn other(self) -> Self {
        if self == Self::Watch { Self::Sites } else { Self::Watch }
    }
}

/// What a recorder says on the program file, for as long as this lives.
#[derive(Debug)]
pub struct Claim {
    _file: Option<File>,
}

impl Claim {
    /// Of a server's program; none where a recorder works by the other means. A file system that knows no locks cannot
    /// tell: then nobody is seen.
    pub fn of(postmaster: i32, means: Means) -> Option<Self> {
        let Ok(file) = File::open(process::program(postmaster)) else { return Some(Self { _file: None }) };
        let is_kept = lock(&file, libc::F_OFD_SETLK, libc::F_RDLCK, means).is_ok();
        let other = lock(&file, libc::F_OFD_GETLK, libc::F_WRLCK, means.other());
        let is_taken = other.is_ok_and(|kind| kind != libc::F_UNLCK);
        (!is_taken).then(|| Self { _file: is_kept.then_some(file) })
    }
}

/// Sets a lock, or asks which one is in its way: the kind of lock that is then told.
fn lock(file: &File, command: i32, kind: i32, means: Means) -> io::Result<i32> {
    let mut one = libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: means.place(),
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the lock lives through the call, which takes nothing else.
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
