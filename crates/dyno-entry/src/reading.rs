//! Reading of trace files, with progress on a terminal; a signal ends the reading.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use dyno_trace::oracle_10046::job::{Job, JobOptions};
use dyno_trace::oracle_10046::profile::Request;
use serde_json::{Map, Value};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

/// Interval at which progress is checked.
const TICK: Duration = Duration::from_millis(20);
/// Time after which progress is shown.
const SHOWN_FROM: Duration = Duration::from_millis(500);

/// Answer of the core.
pub type Found = Map<String, Value>;

/// Outcome of a reading.
pub enum Ended {
    /// The reading succeeded, with this answer.
    Answer(Found),
    /// The reading failed.
    Failed,
    /// A signal interrupted the reading.
    Interrupted,
}

/// Reads the files for a profile.
pub fn answer(files: &[String]) -> Ended {
    carried_out(files, |job| job.profile_map(&Request::default()).ok())
}

/// Imports the files into an empty folder; when this returns, nothing writes to the folder any more.
pub fn import(files: &[String], to: &Path) -> Ended {
    let to = to.to_owned();
    carried_out(files, move |job| serde_json::from_str(&job.import(&to).ok()?).ok())
}

fn carried_out(files: &[String], work: impl FnOnce(&Job) -> Option<Found> + Send + 'static) -> Ended {
    let signals = signals();
    let job = Arc::new(Job::new(JobOptions::of(files)));
    let (tell, told) = mpsc::channel();
    let of_thread = Arc::clone(&job);
    std::thread::spawn(move || tell.send(work(&of_thread)));
    let mut shown = Shown { begun: Instant::now(), written: false };
    loop {
        match told.recv_timeout(TICK) {
            Ok(found) => {
                shown.end();
                return found.map_or(Ended::Failed, Ended::Answer);
            }
            Err(RecvTimeoutError::Disconnected) => {
                shown.end();
                return Ended::Failed;
            }
            Err(RecvTimeoutError::Timeout) if signals.load(Ordering::Relaxed) => {
                job.stop();
                told.recv().ok();
                shown.end();
                return Ended::Interrupted;
            }
            Err(RecvTimeoutError::Timeout) => shown.show(job.progress()),
        }
    }
}

/// Installs handlers for SIGHUP, SIGINT and SIGTERM, and returns the flag that they set; a signal that was ignored when
/// this process started stays ignored. SIGXFSZ is ignored, so that exceeding the file size limit fails the write
/// instead of killing the process.
fn signals() -> Arc<AtomicBool> {
    let heard = Arc::new(AtomicBool::new(false));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if ignored >> (signal - 1) & 1 == 0 {
            // Where it cannot be heard it ends the process, as it does by itself.
            signal_hook::flag::register(signal, Arc::clone(&heard)).ok();
        }
    }
    signal_hook::flag::register(SIGXFSZ, Arc::default()).ok();
    heard
}

/// Progress line that is shown on stderr if it is a terminal.
struct Shown {
    begun: Instant,
    written: bool,
}

impl Shown {
    fn show(&mut self, (done, total): (u64, u64)) {
        let elapsed = self.begun.elapsed();
        if total == 0 || elapsed < SHOWN_FROM || !std::io::stderr().is_terminal() {
            return;
        }
        let share = format!("{:.0}%", done as f64 / total as f64 * 100.0);
        let line = format!("reading {share:>4}, {:.0} MB/s", done as f64 / elapsed.as_secs_f64() / 1e6);
        write!(std::io::stderr(), "\r{line:<40}").ok();
        self.written = true;
    }

    fn end(&self) {
        if self.written {
            write!(std::io::stderr(), "\r{:<40}\r", "").ok();
        }
    }
}
