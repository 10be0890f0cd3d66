//! The help of the program itself, `dbdyno --help`, whose text is generated from the commands that Python has.

use std::ffi::OsString;

/// Help of `dbdyno` as Python prints it at `WIDTH` columns or more (`python tests/manners/native_help.py` writes it).
const HELP: &str = include_str!("help.txt");
/// Width of the output beyond which Python's help becomes no wider [columns].
const WIDTH: usize = 80;

/// Returns the help if only the help is requested and the terminal, if there is one, is wide enough.
pub fn of(given: &[OsString]) -> Option<&'static str> {
    let [word] = given else { return None };
    (matches!(word.to_str(), Some("--help" | "-h")) && width()? >= WIDTH).then_some(HELP)
}

/// Returns the width of the output in columns; `None` for a value of COLUMNS that only Python can judge.
fn width() -> Option<usize> {
    let told = std::env::var_os("COLUMNS").unwrap_or_default();
    if !told.is_empty() {
        return told.to_str()?.parse().ok().filter(|columns| *columns > 0);
    }
    let seen = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| size.ws_col);
    Some(if seen == 0 { WIDTH } else { seen.into() })
}
