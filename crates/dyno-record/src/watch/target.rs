//! Server to be watched: what its program file shows, and whether the server may be watched at all.

use std::os::unix::fs::MetadataExt;

use crate::RecordError;
use crate::claim::{Claim, Means};
use crate::code::Code;
use crate::elf::Image;
use crate::names::{EventNames, all_events};
use crate::perf::{self, Event, Scope, Source};
use crate::probes::{self, Version};
use crate::process;
use crate::sites::sites;

use super::layout::{Layout, layout};
use super::price::{self, Price};
use super::store::Stores;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const PROBED: &str = "another `dbdyno trace record --mode sites` probes the program, and watchpoints are never set beside \
                      probes";
const BY_SITES: &str = "end the other tracer, or record with --mode sites";
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Server that may be watched.
pub struct Target {
    /// Process id of the postmaster.
    pub postmaster: i32,
    /// Version of the server.
    pub version: Version,
    /// Path of the server's program.
    pub program: String,
    /// Class and name of each wait event, by its number.
    pub names: EventNames,
    /// Number of the wait event `ClientRead`.
    pub client_read: u32,
    /// Address of `my_wait_event_info` in the processes.
    pub pointer: u64,
    /// Value of the pointer `my_wait_event_info` before a process has its place in shared memory.
    pub before: u64,
    /// Where statements are published; `None` if the code is not as expected.
    pub layout: Option<Layout>,
    /// Cost of a note.
    pub price: Price,
    /// Decoder of stores.
    pub stores: Stores,
    /// Address of the program's code in its processes; `code` is a copy of that code from the program's file.
    text: u64,
    code: Vec<u8>,
    _claim: Claim,
}

/// Measures the cost of a watchpoint on this machine; with `pid`, also checks that this process may be watched.
///
/// # Errors
/// The kernel allows no watchpoint, or none on this process.
pub fn watch_cost(pid: Option<i32>) -> Result<Price, RecordError> {
    let refused = |error| RecordError::Unwatched(why(&error, pid), next(&error));
    let price = price::measure().map_err(refused)?;
    if let Some(pid) = pid {
        Event::open(&Source::OwnTasks, Scope { pid, cpu: -1 }, None).map_err(refused)?;
        memory(pid)?;
    }
    Ok(price)
}

fn number(path: &str) -> i32 {
    std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Returns a sentence that explains why the kernel refuses to watch a process.
pub(super) fn why(error: &std::io::Error, pid: Option<i32>) -> String {
    let own = perf::user();
    let owner = pid.and_then(|pid| std::fs::metadata(format!("/proc/{pid}")).ok()).map_or(own, |found| found.uid());
    reason(error, number(PARANOID), own, owner)
}

fn reason(error: &std::io::Error, paranoid: i32, own: u32, owner: u32) -> String {
    let reason = match error.raw_os_error() {
        Some(libc::ENOSPC) => {
            "all four debug registers of the process are taken: a debugger, pg_wait_tracer or another \
             `dbdyno trace record` watches it already"
                .to_owned()
        }
        Some(libc::EACCES | libc::EPERM) if paranoid >= 3 => {
            format!("perf_event_paranoid is {paranoid}, which leaves perf to root and CAP_PERFMON")
        }
        Some(libc::EACCES | libc::EPERM) if own != owner => {
            let without = if own == 0 { ", without CAP_SYS_PTRACE" } else { "" };
            format!("the server's processes are those of user {owner}, dbdyno runs as user {own}{without}")
        }
        Some(libc::EPERM) => "perf_event_open is not permitted: a container's seccomp profile, or lockdown".to_owned(),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENOSYS) => {
            "this kernel or processor has no watchpoints".to_owned()
        }
        _ => return error.to_string(),
    };
    format!("{reason} ({error})")
}

/// Returns the next step for a user to whom the kernel refused a watchpoint.
pub(super) fn next(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => "end the other tracer, or record with --mode sites, which needs no register",
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENOSYS) => {
            "record with --mode sites as root, or sample: dbdyno snap watch"
        }
        _ => "run dbdyno as the server's own user or as root; see with `dbdyno doctor` what is allowed here",
    }
}

/// Checks that the server's memory can be read: a user's own processes can, unless Yama forbids it.
fn memory(pid: i32) -> Result<(), RecordError> {
    let Err(error) = std::fs::File::open(format!("/proc/{pid}/mem")) else { return Ok(()) };
    let is_own = std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|found| found.uid() == perf::user());
    if is_own && number(YAMA) > 0 {
        return Err(RecordError::Unwatched(
            format!("kernel.yama.ptrace_scope is {}, so the server's memory cannot be read ({error})", number(YAMA)),
            "run dbdyno as root, or run: sysctl kernel.yama.ptrace_scope=0",
        ));
    }
    Err(RecordError::Unwatched(why(&error, Some(pid)), next(&error)))
}

impl Target {
    /// Examines the server to which process `pid` belongs.
    ///
    /// # Errors
    /// The process or its program cannot be read, the version is unknown, or the server may not be watched.
    pub fn of(pid: i32) -> Result<Self, RecordError> {
        let postmaster = process::postmaster(pid)?;
        let program = process::program_name(postmaster)?;
        let image = Image::open(&process::program(postmaster))?;
        let version = Version::of(&image)?;
        let claim =
            Claim::of(postmaster, Means::Watch).ok_or_else(|| RecordError::Unwatched(PROBED.to_owned(), BY_SITES))?;
        let price = watch_cost(Some(postmaster))?;
        let (functions, addresses) = probes::wanted(&image)?;
        let code = Code::read(&image, &functions, &addresses);
        let shift = process::base(postmaster)?.wrapping_sub(image.first);
        let address = |name| image.need(name).map(|symbol| symbol.addr);
        let variable = address("my_wait_event_info")?;
        let (names, client_read) = all_events(&code)?;
        let known = sites(&code, variable)?.iter().filter_map(|site| code.at(site.store)).collect();
        let (begin, text) = image.text();
        let made = Self {
            postmaster,
            version,
            program: program.display().to_string(),
            names,
            client_read,
            pointer: variable.wrapping_add(shift),
            before: image.number(variable, 8).unwrap_or(0).wrapping_add(shift),
            layout: layout(&code, &image).map(|found| found.shifted(shift)),
            price,
            text: begin.wrapping_add(shift),
            code: text.to_vec(),
            stores: Stores::new(image, shift, known),
            _claim: claim,
        };
        match made.probed(pid) {
            Some(sentence) => Err(RecordError::Unwatched(sentence, BY_SITES)),
            None => Ok(made),
        }
    }

    /// Returns a sentence if a process's code contains probes, otherwise `None`.
    ///
    /// A kernel may lose track where a watchpoint and a probe meet, so the two must never be combined on one process.
    pub fn probed(&self, pid: i32) -> Option<String> {
        let mut now = vec![0; self.code.len()];
        process::read(pid, self.text, &mut now)?;
        let places = now.iter().zip(&self.code).filter(|(now, file)| now != file).count();
        (places > 0).then(|| {
            format!(
                "process {pid} has probes in its code ({places} bytes are changed): perf, bpftrace or `dbdyno trace \
                 record --mode sites` is at work, and watchpoints are never set beside probes"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::*;

    #[test]
    fn a_refusal_names_its_reason_and_what_helps() {
        let said = |code, paranoid, own, owner| reason(&Error::from_raw_os_error(code), paranoid, own, owner);
        assert!(said(libc::EACCES, 4, 1000, 1000).starts_with("perf_event_paranoid is 4"));
        assert!(said(libc::EACCES, 2, 1000, 26).starts_with("the server's processes are those of user 26"));
        assert!(said(libc::EACCES, 2, 0, 26).contains("dbdyno runs as user 0, without CAP_SYS_PTRACE ("));
        assert!(said(libc::EPERM, 2, 1000, 1000).contains("seccomp"));
        assert!(said(libc::ENOSPC, 2, 0, 26).contains("four debug registers"));
        assert!(said(libc::ENOENT, 2, 0, 0).contains("no watchpoints"));
        assert!(next(&Error::from_raw_os_error(libc::ENOSPC)).contains("--mode sites"));
    }
}
