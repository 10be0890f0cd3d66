//! Hands a command to Python: to the program that its packaging installs beside this one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use serde_json::json;

use crate::reading::Found;

/// Name of that program.
const NAME: &str = "dbdyno-python";
/// Environment variable with the result of a reading and the command that it answers.
const READING: &str = "DBDYNO_READING";
/// Longest value of an environment variable that every Linux accepts, with a margin.
const LONGEST: usize = 100_000;

/// Replaces this process by that program with the same arguments; passes a result along so that nothing is read twice.
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

/// Returns the path of the program beside this one, links followed; no other place, and never the working folder, is
/// searched.
fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.parent()?.join(NAME)).filter(|path| path.is_file())
}
