//! The program `dbdyno`: two commands answered natively, all others handed to Python.
//!
//! Nearly all of dbdyno's commands are Python's: this program then becomes `dbdyno-python`, which is installed beside
//! it. One answer is asked for so often, and is so much quicker to find than Python is to start, that it is given
//! here: `dbdyno trace profile FILES` into a file or a pipe, as a table or as JSON. Whatever is not plain about it
//! (other options, a file that is refused, a warning, a name that needs care on a terminal, a table that does not fit)
//! is Python's as well, which takes the answer of the reading along and does not read again (`trace/early_read.py`).
//! `dbdyno trace import FILES --out RUN` is done here, too, where nothing is at RUN yet (`import.rs`).
//!
//! What is printed here, and the run that is made, is byte for byte Python's (`tests/trace/test_native_entry.py`).

mod ask;
mod import;
mod json;
mod model;
mod python;
mod reading;
mod table;
mod words;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use ask::{Ask, Form};
use model::Model;
use reading::Ended;

fn main() -> ExitCode {
    let given: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(ask) = import::Ask::of(&given) {
        return import::answer(&ask).unwrap_or_else(|| python::go_on(&given, None));
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

/// What is printed, if it can be told here.
fn text(ask: &Ask, found: &reading::Found) -> Option<String> {
    let model = Model::of(found, &ask.files)?;
    match ask.form {
        Form::Json => Some(model.json()),
        Form::Table => table::text(&model, ask.width),
    }
}

/// A pipe that nobody reads any more is no error; what cannot be written is.
fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("dbdyno: the answer could not be written: {error}\n  next: make room, or write to another place");
            ExitCode::from(2)
        }
        _ => ExitCode::SUCCESS,
    }
}
