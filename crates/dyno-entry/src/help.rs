//! The help for the program itself, `dbdyno --help`; its text is generated from the commands that Python defines.

use std::ffi::OsString;

/// Help of `dbdyno` as Python prints it at `WIDTH` columns or more (written by `python tests/manners/native_help.py`).
const HELP: &str = include_str!("help.txt");
/// Width of the output from which on Python's help does not change [columns].
const WIDTH: usize = 80;

/// Returns the help if the arguments request nothing else, and if the output is wide enough.
pub fn of(given: &[OsString]) -> Option<&'static str> {
    let [word] = given else { return None };
    (matches!(word.to_str(), Some("--help" | "-h")) && width()? >= WIDTH).then_some(HELP)
}

/// Returns the width of the output [columns]; `None` if COLUMNS has a value that only Python can interpret.
fn width() -> Option<usize> {
    let told = std::env::var_os("COLUMNS").unwrap_or_default();
    if !told.is_empty() {
        return told.to_str()?.parse().ok().filter(|columns| *columns > 0);
    }
    let seen = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| size.ws_col);
    Some(if seen == 0 { WIDTH } else { seen.into() })
}
