//! Parser of the arguments of `trace profile`, a command that this program answers without Python.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

/// Width of a table if the width of the output is unknown [columns].
const WIDTH: usize = 100;
/// Smallest width of a table [columns].
const NARROWEST: usize = 40;

/// Format of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text in columns.
    Table,
    /// Data of the page (its model) as JSON.
    Json,
}

/// Command `trace profile FILES`, whose answer is a table or JSON.
#[derive(Debug)]
pub struct Ask {
    /// Names of the files, as on the command line.
    pub files: Vec<String>,
    /// Format of the answer.
    pub form: Form,
    /// Width of a table [columns].
    pub width: usize,
}

impl Ask {
    /// Returns the parsed command, or `None` if this program does not answer it. Python answers if the output is a
    /// terminal, since only Python can write colours.
    pub fn of(given: &[OsString]) -> Option<Self> {
        let words: Option<Vec<&str>> = given.iter().map(|word| word.to_str()).collect();
        let words = words?;
        let ["trace", "profile", rest @ ..] = words.as_slice() else { return None };
        let (files, form) = parts(rest)?;
        let files: Vec<String> = files.into_iter().map(str::to_owned).collect();
        let plain = !files.is_empty() && files.iter().all(|file| Path::new(file).is_file());
        (plain && !std::io::stdout().is_terminal()).then(|| Self { files, form, width: width() })
    }
}

/// Returns the files and the format, or `None` if any other option is present.
fn parts<'a>(words: &[&'a str]) -> Option<(Vec<&'a str>, Form)> {
    let (mut files, mut form) = (Vec::new(), Form::Table);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let named = match *word {
            "--format" => *rest.next()?,
            other if other.starts_with("--format=") => &other["--format=".len()..],
            other if other.starts_with('-') => return None,
            file => {
                files.push(file);
                continue;
            }
        };
        form = match named {
            "table" => Form::Table,
            "json" => Form::Json,
            _ => return None,
        };
    }
    Some((files, form))
}

fn width() -> usize {
    let told = std::env::var("COLUMNS").unwrap_or_default();
    let digits = !told.is_empty() && told.bytes().all(|byte| byte.is_ascii_digit());
    let given = told.parse().ok().filter(|columns| digits && *columns > 0);
    given.unwrap_or(WIDTH).max(NARROWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_forms_are_told_apart_and_any_other_option_is_left_to_python() {
        assert_eq!(parts(&["a", "--format", "json", "b"]), Some((vec!["a", "b"], Form::Json)));
        assert_eq!(parts(&["--format=table", "a"]), Some((vec!["a"], Form::Table)));
        for other in [&["a", "--by", "class"][..], &["a", "--format=csv"], &["-"], &["--format"], &["a", "-o", "b"]] {
            assert_eq!(parts(other), None, "{other:?}");
        }
    }
}
