//! The rest of dbdyno: the program that Python's packaging makes, beside this one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use serde_json::json;

use crate::reading::Found;

/// Its name.
const NAME: &str = "dbdyno-python";
/// Where it finds the answer of a reading, with the words that it answers.
const READING: &str = "DBDYNO_READING";
/// The longest value that every Linux takes in the environment, with room to spare.
const LONGEST: usize = 100_000;

/// Becomes that program, with the same words. An answer goes along, so that nothing is read twice.
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

/// Beside this program, links followed: nowhere else, least of all in the folder that somebody works in.
fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.parent()?.join(NAME)).filter(|path| path.is_file())
}
