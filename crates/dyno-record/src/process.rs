//! Processes of the server, read from /proc; nothing is written.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use crate::RecordError;
use crate::perf;
use crate::reading::memory::copy;

/// Longest part of a server's command line that an error shows [characters].
const COMMAND_MOST: usize = 60;

fn proc(pid: i32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

fn refused(pid: i32, error: &std::io::Error) -> RecordError {
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => {
            "there is no such process\n  next: give the id of a running process of PostgreSQL".to_owned()
        }
        std::io::ErrorKind::PermissionDenied => match fs::metadata(proc(pid, "")) {
            Ok(found) if found.uid() != perf::user() => not_ours(pid, &user_name(found.uid())),
            _ => format!("the kernel does not let dbdyno read it ({error})\n  next: run dbdyno as root"),
        },
        _ => error.to_string(),
    };
    RecordError::Process(pid, why)
}

/// Returns the reason for not reading a server that another user started, and how to go on.
fn not_ours(pid: i32, owner: &str) -> String {
    let started = fs::read(proc(pid, "cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&started).replace('\0', " ");
    let command: String = words.trim().chars().take(COMMAND_MOST).collect();
    let server = if command.is_empty() { "the server".to_owned() } else { format!("the server ({command})") };
    let own = user_name(perf::user());
    format!(
        "{server} belongs to user {owner}, but dbdyno runs as {own}\n  next: run dbdyno as root, or as the server's \
         user (sudo -u {owner} dbdyno ...); `ps -fp {pid}` shows the process"
    )
}

/// Returns the name of a user, or the number if /etc/passwd has no name for it.
fn user_name(uid: u32) -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("#{uid}"))
}

/// Returns a path to a process's program that works even if the file was replaced or is in a container.
pub fn program(pid: i32) -> PathBuf {
    proc(pid, "exe")
}

/// Returns the path of a process's program.
///
/// # Errors
/// There is no such process, or it belongs to another user.
pub fn program_name(pid: i32) -> Result<PathBuf, RecordError> {
    fs::read_link(program(pid)).map_err(|error| refused(pid, &error))
}

fn stat(pid: i32) -> Option<(char, i32)> {
    let text = fs::read_to_string(proc(pid, "stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.next()?.parse().ok()?))
}

/// Returns the reason why nothing more will be recorded (the server or the only recorded process has ended), or `None`.
pub fn over(postmaster: i32, only: Option<i32>) -> Option<String> {
    let is_over = |pid: i32| stat(pid).is_none_or(|(state, _)| matches!(state, 'Z' | 'X'));
    if is_over(postmaster) {
        return Some(format!("ended with the server (process {postmaster})"));
    }
    only.filter(|pid| is_over(*pid)).map(|pid| format!("ended with process {pid}"))
}

/// Returns the parent of a process.
pub fn parent(pid: i32) -> Option<i32> {
    stat(pid).map(|(_, parent)| parent)
}

/// Returns the children of a process.
pub fn children(pid: i32) -> Vec<i32> {
    let text = fs::read_to_string(proc(pid, &format!("task/{pid}/children"))).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Returns a process's title without `postgres: `: `user database host idle`, `checkpointer`.
pub fn title(pid: i32) -> Option<String> {
    let bytes = fs::read(proc(pid, "cmdline")).ok()?;
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    let text = String::from_utf8_lossy(&bytes[..end]).replace('\0', " ");
    let text = text.strip_prefix("postgres: ")?;
    // A cluster with a name has the name at the beginning.
    Some(text.trim().to_owned())
}

/// Returns the address at which the program's first byte is mapped in the process.
///
/// # Errors
/// The process cannot be read, or its program is not mapped.
pub fn base(pid: i32) -> Result<u64, RecordError> {
    let name = program_name(pid)?;
    let text = fs::read_to_string(proc(pid, "maps")).map_err(|error| refused(pid, &error))?;
    let line = text.lines().find(|line| line.split_whitespace().nth(5).is_some_and(|path| name.as_os_str() == path));
    line.and_then(|line| u64::from_str_radix(line.split('-').next()?, 16).ok())
        .ok_or_else(|| RecordError::Process(pid, "its program is not where its memory says it is".to_owned()))
}

/// Reads bytes of a process's memory.
///
/// The system call needs the right to trace the process; the file, which is tried where the call is forbidden, also
/// the right to read files of the process's user.
pub fn read(pid: i32, addr: u64, into: &mut [u8]) -> Option<()> {
    if copy(pid, addr, into) == Some(into.len()) {
        return Some(());
    }
    fs::File::open(proc(pid, "mem")).ok()?.read_exact_at(into, addr).ok()
}

/// Reads a pointer in a process's memory; `None` also for a null pointer.
pub fn pointer(pid: i32, addr: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    read(pid, addr, &mut bytes)?;
    Some(u64::from_le_bytes(bytes)).filter(|value| *value != 0)
}

/// Returns true if this process is in the initial pid namespace, so that process ids are those of the kernel.
pub fn numbers_are_the_kernels() -> bool {
    const FIRST: &str = "pid:[4026531836]"; // PROC_PID_INIT_INO
    fs::read_link("/proc/self/ns/pid").is_ok_and(|name| name.as_os_str() == FIRST)
}

/// Reads the text at an address, up to `most` bytes.
pub fn text(pid: i32, addr: u64, most: usize) -> Option<String> {
    let mut bytes = vec![0; most];
    let got = match copy(pid, addr, &mut bytes) {
        Some(got) => got,
        None => fs::File::open(proc(pid, "mem")).ok()?.read_at(&mut bytes, addr).ok()?,
    };
    let end = bytes[..got].iter().position(|byte| *byte == 0).unwrap_or(got);
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// Returns the postmaster of a server; `pid` is the postmaster or one of its children.
///
/// # Errors
/// The process cannot be read.
pub fn postmaster(pid: i32) -> Result<i32, RecordError> {
    let own = program_name(pid)?;
    let above = parent(pid).filter(|above| *above > 1);
    Ok(above.filter(|above| program_name(*above).is_ok_and(|name| name == own)).unwrap_or(pid))
}
