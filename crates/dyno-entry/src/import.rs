//! `dbdyno trace import FILES --out RUN` where nothing exists at RUN yet: writes Parquet, a manifest and two lines of
//! output.
//!
//! Works like `trace/staging.py`: the run is made in a folder with a temporary name next to RUN, with a note that
//! identifies the process, and renamed when it is complete. After any failure (a refused file, a full disk, RUN exists
//! by now) that folder is removed, and Python starts again and reports the reason.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use dyno_evidence::private::create_file;
use dyno_trace::oracle_10046::writer::moment;
use serde_json::{Value, json};

use crate::json::Out;
use crate::process::started;
use crate::reading::{Ended, Found, import};

/// Name of the note that identifies the process that makes a run.
const NOTE: &str = ".maker.json";
/// Reason that does not count as a failure: in most cases the file is still being written.
const CUT_SHORT: &str = "the file ends inside a record";

/// Parsed arguments of the command.
#[derive(Debug, PartialEq, Eq)]
pub struct Ask {
    files: Vec<String>,
    out: String,
}

impl Ask {
    /// Returns the parsed command, or `None` if this program does not answer it.
    pub fn of(given: &[OsString]) -> Option<Self> {
        let words: Option<Vec<&str>> = given.iter().map(|word| word.to_str()).collect();
        let words = words?;
        let ["trace", "import", rest @ ..] = words.as_slice() else { return None };
        let ask = parts(rest)?;
        (ask.files.iter().all(|file| Path::new(file).is_file()) && is_free(&ask.out)).then_some(ask)
    }
}

/// Returns the files and the path of the run, or `None` if any other option is present.
fn parts(words: &[&str]) -> Option<Ask> {
    let (mut files, mut out) = (Vec::new(), None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let named = match *word {
            "--out" => *rest.next()?,
            other if other.starts_with("--out=") => &other["--out=".len()..],
            other if other.starts_with('-') => return None,
            file => {
                files.push(file.to_owned());
                continue;
            }
        };
        if out.replace(named.to_owned()).is_some() {
            return None;
        }
    }
    let out = out.filter(|out| is_plain(out))?;
    (!files.is_empty()).then_some(Ask { files, out })
}

/// Returns true if Python would print the path unchanged, and no character needs escaping on a terminal.
pub fn is_plain(out: &str) -> bool {
    let written: PathBuf = Path::new(out).components().collect();
    let is_graphic = out.bytes().all(|byte| byte.is_ascii_graphic());
    is_graphic && !out.starts_with(['-', '.', '~']) && written.as_os_str() == out && written.file_name().is_some()
}

/// Returns true if the parent folder exists and contains neither the run nor a temporary folder of an earlier import.
fn is_free(out: &str) -> bool {
    let out = Path::new(out);
    let left = format!("{}importing-", prefix(out));
    let taken = |entry: io::Result<fs::DirEntry>| {
        entry.map_or(true, |entry| entry.file_name().to_string_lossy().starts_with(&left))
    };
    let is_nothing = fs::symlink_metadata(out).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    is_nothing && fs::read_dir(above(out)).is_ok_and(|entries| !entries.into_iter().any(taken))
}

fn above(out: &Path) -> &Path {
    out.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the prefix of the names of the temporary folders next to the run.
fn prefix(out: &Path) -> String {
    format!(".{}.", out.file_name().unwrap_or_default().to_string_lossy())
}

/// Imports the files; returns `None` and leaves no files behind if Python must import them.
pub fn answer(ask: &Ask) -> Option<ExitCode> {
    let out = Path::new(&ask.out);
    let number = std::hash::RandomState::new().build_hasher().finish() as u32;
    let aside = above(out).join(format!("{}importing-{number:08x}", prefix(out)));
    let ended = make(&aside).ok().map(|()| import(&ask.files, &aside));
    let code = match ended {
        Some(Ended::Answer(found)) => put(ask, &found, &aside),
        Some(Ended::Interrupted) => {
            eprintln!("interrupted");
            Some(ExitCode::from(130))
        }
        Some(Ended::Failed) | None => None,
    };
    if aside.exists() {
        fs::remove_dir_all(&aside).ok();
    }
    code
}

/// Creates the folder, with a note that identifies this process even if its process id is used again.
fn make(aside: &Path) -> io::Result<()> {
    let started = started("self").ok_or(io::ErrorKind::Unsupported)?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
    let note = json!({"pid": std::process::id(), "started": started, "host": host.trim_end()});
    DirBuilder::new().mode(0o700).create(aside)?;
    create_file(&aside.join(NOTE))?.write_all(note.to_string().as_bytes())
}

/// Writes the manifest, gives the run its final name, and prints the result.
fn put(ask: &Ask, found: &Found, aside: &Path) -> Option<ExitCode> {
    let is_whole = found["refused"].as_array().is_some_and(Vec::is_empty);
    let some_file = found["files"].as_array().is_some_and(|files| !files.is_empty());
    if !is_whole || !some_file {
        return None;
    }
    in_place(&manifest(found)?, aside, Path::new(&ask.out)).ok()?;
    let account = &found["totals"]["account"];
    let told = writeln!(io::stdout(), "{}: {} calls, {} waits", ask.out, account["calls"], account["waits"]);
    drop(told); // a pipe that nobody reads any more is no error
    eprintln!("next: dbdyno trace profile {}", ask.out);
    Some(ExitCode::from(if torn(found) > 0 { 2 } else { 0 }))
}

fn in_place(manifest: &str, aside: &Path, out: &Path) -> io::Result<()> {
    create_file(&aside.join("manifest.json"))?.write_all(manifest.as_bytes())?;
    fs::remove_file(aside.join(NOTE))?;
    for entry in fs::read_dir(aside)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    File::open(aside)?.sync_all()?;
    fs::rename(aside, out)?;
    // What cannot be read cannot be waited for.
    File::open(above(out)).and_then(|folder| folder.sync_all()).ok();
    Ok(())
}

/// Returns the number of unreadable records, without records that are cut off by the end of a file.
fn torn(found: &Found) -> u64 {
    let unread = found["unread"].as_object();
    unread
        .into_iter()
        .flatten()
        .filter(|(reason, _)| *reason != CUT_SHORT)
        .filter_map(|(_, count)| count.as_u64())
        .sum()
}

/// Returns the manifest in the form that `trace/source.py` writes.
fn manifest(found: &Found) -> Option<String> {
    let files = found["files"].as_array()?;
    let first = files.first()?.get("path")?.as_str()?;
    let mut out = Out::default();
    out.open('{');
    let texts = [("kind", "trace"), ("format", "oracle 10046"), ("status", "complete")];
    out.entry("schema", &1.into());
    for (name, text) in texts {
        out.entry(name, &text.into());
    }
    out.entry("title", &title(first, files.len()).into());
    out.entry("started_at", &now()?.into());
    out.entry("tool_version", &env!("CARGO_PKG_VERSION").into());
    for name in ["files", "totals", "unread", "warnings"] {
        out.entry(name, &found[name]);
    }
    out.key("options");
    out.open('{');
    out.entry("think_time_ns", &1_000_000_000.into());
    out.entry("binds", &false.into());
    out.entry("tim_unit_ns", &Value::Null);
    out.close('}');
    out.entry("refused", &found["refused"]);
    out.close('}');
    Some(out.end())
}

/// Returns the name of the first file, and how many more files there are.
fn title(first: &str, files: usize) -> String {
    let name = Path::new(first).file_name().map_or(first.into(), |name| name.to_string_lossy());
    if files == 1 { name.into_owned() } else { format!("{name} and {} more", files - 1) }
}

/// Returns the current time as Python's `isoformat` writes it, but always with a fraction of a second.
fn now() -> Option<String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(moment(i64::try_from(since.as_nanos()).ok()?, 0, 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_the_place_are_told_apart_and_any_other_option_is_left_to_python() {
        let asked = |files: &[&str], out: &str| {
            Some(Ask { files: files.iter().map(|file| (*file).to_owned()).collect(), out: out.to_owned() })
        };
        assert_eq!(parts(&["a", "--out", "runs/b", "c"]), asked(&["a", "c"], "runs/b"));
        assert_eq!(parts(&["--out=/x/b", "a"]), asked(&["a"], "/x/b"));
        for other in [
            &["a"][..],
            &["--out", "b"],
            &["a", "--out"],
            &["a", "--out", "b", "--out", "c"],
            &["a", "--out", "b", "--binds"],
            &["a", "--out", "b/"],
            &["a", "--out", "b//c"],
            &["a", "--out", "./b"],
            &["a", "--out", "b/.."],
            &["a", "--out", "a b"],
            &["a", "--out", "ä"],
            &["-", "--out", "b"],
        ] {
            assert_eq!(parts(other), None, "{other:?}");
        }
    }
}
