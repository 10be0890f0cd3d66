//! The program `dbdyno`: answers three commands and the help natively, and hands all others to Python.
//!
//! Nearly all commands are implemented in Python: this program then becomes `dbdyno-python`, which is installed beside
//! it. Three are answered here, because they are run often and take less time than Python needs to start: `dbdyno trace
//! profile FILES` with its output in a file or a pipe, as a table or as JSON, `dbdyno trace import FILES --out RUN`
//! where nothing exists at RUN yet (`import.rs`), and `dbdyno runs` (`runs.rs`). `dbdyno --help` is answered here, too
//! (`help.rs`). In every unusual case (other options, a refused file, a warning, a name that needs escaping on a
//! terminal, a table that does not fit) Python answers. If this program has already read the files, it passes the
//! result to Python, which does not read them again (`trace/early_read.py`).
//!
//! The output and the run folder are identical to Python's, byte for byte (`tests/trace/test_native_entry.py`,
//! `tests/evidence/test_native_runs.py`).

mod ask;
mod help;
mod import;
mod json;
mod model;
mod printing;
mod process;
mod python;
mod reading;
mod rows;
mod run_folder;
mod runs;
mod table;
mod words;
mod wrapping;

use std::ffi::OsString;
use std::process::ExitCode;

use ask::{Ask, Form};
use model::Model;
use printing::print;
use reading::Ended;

fn main() -> ExitCode {
    let given: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(text) = help::of(&given) {
        return print(text);
    }
    if let Some(ask) = import::Ask::of(&given) {
        return import::answer(&ask).unwrap_or_else(|| python::go_on(&given, None));
    }
    if let Some(ask) = runs::Ask::of(&given) {
        return runs::answer(&ask).unwrap_or_else(|| python::go_on(&given, None));
    }
    let Some(ask) = Ask::of(&given) else { return python::go_on(&given, None) };
    match reading::answer(&ask.files) {
        Ended::Answer(found) => match text(&ask, &found) {
            Some(text) => print(&text),
            None => python::go_on(&given, Some(&found)),
        },
        // Python says what is wrong, with all it has to say about it.
        Ended::Failed => python::go_on(&given, None),
        Ended::Interrupted => {
            eprintln!("interrupted");
            ExitCode::from(130)
        }
    }
}

/// Returns the text to print, or `None` if Python must make it.
fn text(ask: &Ask, found: &reading::Found) -> Option<String> {
    let model = Model::of(found, &ask.files)?;
    match ask.form {
        Form::Json => Some(model.json()),
        Form::Table => table::text(&model, ask.width),
    }
}
