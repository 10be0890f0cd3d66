//! `MariaDB`'s logs of statements: the slow log and the general log, each as a text file.
//!
//! Both have times in whole seconds, and the id of the connection, which is not used again while a server runs. What is
//! common to them is here: the banner that a server writes when it starts or when its logs are flushed, and events.

pub mod general;
pub mod slow;

use std::sync::Arc;

use super::entry::{Reading, Who};
use super::event::{Event, Said, Step, What};
use super::parameters::Parameters;

/// Value of [`Event::start`] for sessions that are distinguished by their connection's id.
pub const START: u64 = 1;

/// Returns the version of the server that wrote a banner: `/usr/sbin/mariadbd, Version: 10.11.6-MariaDB-log (Debian).
/// started with:`.
fn banner(line: &[u8]) -> Option<String> {
    let at = line.ends_with(b"started with:").then(|| memchr::memmem::find(line, b", Version: "))??;
    let version = line[at + 11..].split(|byte| *byte == b' ').next().unwrap_or_default();
    Some(String::from_utf8_lossy(version).into_owned())
}

/// Returns true for the lines of a banner after its first one.
fn is_below_banner(line: &[u8]) -> bool {
    line.starts_with(b"Tcp port: ") || (line.starts_with(b"Time") && line.ends_with(b"Argument"))
}

fn statement(sql: Vec<u8>) -> Said {
    Said { step: Step::Simple, name: Vec::new(), sql, parameters: Parameters::default(), prepare: Vec::new() }
}

fn event(at_ns: u64, line: u64, pid: u32, who: Option<Arc<Who>>, what: What, reading: &Reading) -> Event {
    let file = Arc::clone(&reading.file);
    Event { at_ns, floor_ns: at_ns, latest_ns: at_ns, file, line, pid, start: START, who, what }
}
