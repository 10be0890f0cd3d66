//! Hands a command to Python: to the program `dbdyno-python`, which is installed next to this one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use serde_json::json;

use crate::reading::Found;

/// Name of the Python program.
const NAME: &str = "dbdyno-python";
/// Environment variable that holds the result of reading the files, and the command to which this result belongs.
const READING: &str = "DBDYNO_READING";
/// Longest value of an environment variable that every Linux accepts, with a margin.
const LONGEST: usize = 100_000;

/// Replaces this process by the Python program with the same arguments; passes on the result of reading the files, so
/// that nothing is read twice.
pub fn go_on(given: &[OsString], found: Option<&Found>) -> ExitCode {
    let Some(path) = beside() else {
        eprintln!("dbdyno: {NAME} is not beside this program\n  next: install dbdyno again");
        return ExitCode::from(2);
    };
    let mut command = Command::new(&path);
    command.args(given).env_remove(READING);
    let words: Vec<_> = given.iter().filter_map(|word| word.to_str()).collect();
    if let Some(found) = found {
        let answer = json!({"words": words, "answer": json!(found).to_string()}).to_string();
        if answer.len() <= LONGEST {
            command.env(READING, answer);
        }
    }
    let error = command.exec();
    eprintln!("dbdyno: {} cannot be started: {error}\n  next: install dbdyno again", path.display());
    ExitCode::from(2)
}

/// Returns the path of the Python program in the folder of this program, after following links; no other folder, and
/// never the working folder, is searched.
fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.parent()?.join(NAME)).filter(|path| path.is_file())
}
