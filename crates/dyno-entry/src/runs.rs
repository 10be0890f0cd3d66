//! `dbdyno runs`: the runs of a folder, oldest first, in the form of `cli/runs/__init__.py`.
//!
//! Python answers if a run may have left settings of its server changed, which takes a column of its own, and if a
//! folder or a file is not as usual.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::import::is_plain;
use crate::printing::print;
use crate::rows::{self, Form};
use crate::run_folder::{self, Run};
use crate::wrapping::Row;

/// Number of characters of a time that are shown: without fractions of a second and time zone.
const TIME: usize = 19;
/// Most digits of `--limit`.
const DIGITS: usize = 9;

/// Parsed arguments of the command.
#[derive(Debug, PartialEq, Eq)]
pub struct Ask {
    folder: String,
    /// Number of runs to show, 0 for all.
    limit: usize,
    form: Form,
}

impl Ask {
    /// Returns the parsed command, or `None` if this program does not answer it.
    pub fn of(given: &[OsString]) -> Option<Self> {
        let words: Option<Vec<&str>> = given.iter().map(|word| word.to_str()).collect();
        let words = words?;
        let ["runs", rest @ ..] = words.as_slice() else { return None };
        parts(rest)
    }
}

/// Returns the parsed options, or `None` if any other one is present, or one of them twice.
fn parts(words: &[&str]) -> Option<Ask> {
    let (mut folder, mut limit, mut form) = (None, None, None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, value),
            None if *word == "--json" => ("--format", "json"),
            None => (*word, *rest.next()?),
        };
        let is_second = match name {
            "--runs" if !value.is_empty() && !value.starts_with('-') => folder.replace(value.to_owned()).is_some(),
            "--limit" => limit.replace(number(value)?).is_some(),
            "--format" => form.replace(Form::of(value)?).is_some(),
            _ => return None,
        };
        if is_second {
            return None;
        }
    }
    let folder = folder.unwrap_or_else(|| "runs".to_owned());
    Some(Ask { folder, limit: limit.unwrap_or(0), form: form.unwrap_or(Form::Table) })
}

fn number(text: &str) -> Option<usize> {
    let plain = text.len() <= DIGITS && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| plain)
}

/// Prints the list; `None` if Python must make it.
pub fn answer(ask: &Ask) -> Option<ExitCode> {
    if !is_empty(&state_folder()?.join("owed"))? {
        return None;
    }
    let mut runs = run_folder::runs(Path::new(&ask.folder))?;
    if runs.iter().any(Run::may_have_left_settings) {
        return None;
    }
    runs.sort_by(|one, other| one.started.cmp(&other.started));
    let from = if ask.limit == 0 { 0 } else { runs.len().saturating_sub(ask.limit) };
    if from == runs.len() && ask.form == Form::Table {
        if !is_plain(&ask.folder) {
            return None;
        }
        eprintln!("no runs below {}/; `dbdyno run redo-size` makes one", ask.folder);
        return Some(ExitCode::SUCCESS);
    }
    let rows: Option<Vec<Row>> = runs[from..].iter().map(row).collect();
    Some(print(&rows::text(&rows?, ask.form)?))
}

fn row(run: &Run) -> Option<Row> {
    Some([
        ("run", run.name.clone()),
        ("status", run.status.clone()),
        ("started", run.started.chars().take(TIME).collect()),
        ("blocks", run.blocks()?),
        ("title", run.title.clone()),
        ("verdict", run.headline.clone()),
    ])
}

/// Returns the folder of this user's records, as `base/files.py` finds it.
fn state_folder() -> Option<PathBuf> {
    let told = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(own) = told("DBDYNO_STATE") {
        return Some(own.into());
    }
    let above = told("XDG_STATE_HOME").map(PathBuf::from);
    Some(above.or_else(|| Some(Path::new(&told("HOME")?).join(".local/state")))?.join("dbdyno"))
}

/// Returns true if the folder of records contains nothing or does not exist.
fn is_empty(folder: &Path) -> Option<bool> {
    match std::fs::read_dir(folder) {
        Ok(mut entries) => Some(entries.next().is_none()),
        Err(error) => (error.kind() == std::io::ErrorKind::NotFound).then_some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_told_apart_and_any_other_is_left_to_python() {
        let asked = |folder: &str, limit, form| Some(Ask { folder: folder.to_owned(), limit, form });
        assert_eq!(parts(&[]), asked("runs", 0, Form::Table));
        assert_eq!(parts(&["--json"]), asked("runs", 0, Form::Json));
        assert_eq!(parts(&["--runs", "a b", "--limit=3", "--format", "csv"]), asked("a b", 3, Form::Csv));
        for other in [
            &["import"][..],
            &["--help"],
            &["--plan", "a"],
            &["--from=7d"],
            &["--json=1"],
            &["--json", "--format", "csv"],
            &["--runs"],
            &["--runs="],
            &["--runs", "--json"],
            &["--limit", "0"],
            &["--limit", "1_000"],
            &["--limit", "1000000000"],
            &["--format", "arrow"],
            &["--format", "table", "-o", "a"],
        ] {
            assert_eq!(parts(other), None, "{other:?}");
        }
    }
}
