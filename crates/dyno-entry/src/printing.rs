//! Output of an answer.

use std::io::{self, Write};
use std::process::ExitCode;

/// Prints the text; a closed pipe is not an error, but any other failed write is.
pub fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!(
                "dbdyno: the answer could not be written: {error}\n  next: free space, or write to another place"
            );
            ExitCode::from(2)
        }
        _ => ExitCode::SUCCESS,
    }
}
