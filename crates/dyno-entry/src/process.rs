//! Identity of a process, in the form that `evidence/run.py` uses.

use std::collections::BTreeMap;
use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde_json::value::RawValue;

/// Returns the boot id and the kernel's start time of a process (`self` for this one); `None` if it has ended. A zombie
/// counts as ended.
pub fn started(pid: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let mut fields = stat.rsplit(')').next()?.split_ascii_whitespace();
    let state = fields.next()?;
    let ticks = fields.nth(18)?;
    (state != "Z").then(|| format!("{}:{ticks}", boot.trim()))
}

/// Returns true if the described process still runs on this machine; `None` if Python must interpret the description.
pub fn is_alive(process: &RawValue) -> Option<bool> {
    let process: BTreeMap<String, &RawValue> = serde_json::from_str(process.get()).ok()?;
    let Some(pid) = process.get("pid") else { return Some(false) };
    let pid = Pid::from_raw(pid.get().parse().ok().filter(|pid| *pid > 0)?)?;
    match test_kill_process(pid) {
        Err(Errno::SRCH) => return Some(false),
        Ok(()) | Err(Errno::PERM) => {}
        Err(_) => return None,
    }
    let known: Option<String> =
        process.get("started").map_or(Some(None), |text| serde_json::from_str(text.get()).ok())?;
    Some(known.is_none_or(|known| started(&pid.as_raw_nonzero().to_string()) == Some(known)))
}
