//! Rows of text as a table, CSV, JSON or JSON lines, as `cli/output.py` writes them.

use std::io::IsTerminal;

use serde_json::Value;

use crate::json::Out;
use crate::wrapping::{self, Row};

/// Width of a table if the width of the output is unknown: in a pipe or a file, and on a terminal [columns].
const WIDTHS: [usize; 2] = [200, 80];

/// Format of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text in columns.
    Table,
    /// Comma-separated values with a header line.
    Csv,
    /// An array of objects.
    Json,
    /// An object in each line.
    JsonLines,
}

impl Form {
    /// Returns the format with this name.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "table" => Self::Table,
            "csv" => Self::Csv,
            "json" => Self::Json,
            "jsonl" => Self::JsonLines,
            _ => return None,
        })
    }
}

/// Returns the rows as text, or `None` if Python must write them.
pub fn text(rows: &[Row], form: Form) -> Option<String> {
    let mut cells = rows.iter().flatten().map(|(_, cell)| cell.as_str());
    if !cells.clone().all(is_safe) || (!cells.all(str::is_ascii) && !is_utf8()) {
        return None;
    }
    let text = match form {
        Form::Table => {
            let terminal = std::io::stdout().is_terminal();
            // rich, which makes the tables in Python, takes these as a wish for colours.
            let colours = ["FORCE_COLOR", "TTY_COMPATIBLE"].iter().any(|name| std::env::var_os(name).is_some());
            if terminal && colours {
                return None;
            }
            wrapping::table(rows, width(terminal)?)?
        }
        Form::Csv => csv(rows),
        Form::Json => json(rows),
        Form::JsonLines => rows.iter().map(json_line).collect(),
    };
    Some(if text.ends_with('\n') { text } else { text + "\n" })
}

/// Returns true if the text has no character that is escaped on a terminal (`base/escaping.py`), and no carriage
/// return.
fn is_safe(text: &str) -> bool {
    !text.chars().any(|sign| {
        matches!(sign, '\0'..='\x08' | '\x0b'..='\x1f' | '\x7f'..='\u{9f}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    })
}

/// Returns true if Python writes text in UTF-8: the locale says so, or is Python's "C".
fn is_utf8() -> bool {
    let told = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(told).unwrap_or_default().to_ascii_lowercase();
    let plain = ["", "c", "posix"].contains(&locale.as_str()) || locale.ends_with("utf-8") || locale.ends_with("utf8");
    plain && ["PYTHONIOENCODING", "PYTHONUTF8", "PYTHONCOERCECLOCALE"].iter().find_map(told).is_none()
}

/// Returns the width of the output [columns]; `None` if COLUMNS has a value that only Python can interpret.
fn width(terminal: bool) -> Option<usize> {
    let told = std::env::var_os("COLUMNS").unwrap_or_default();
    if !told.is_empty() {
        let told = told.to_str().filter(|told| told.bytes().all(|byte| byte.is_ascii_digit()))?;
        return told.parse().ok().filter(|columns| *columns > 0);
    }
    let seen = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| size.ws_col);
    Some(if seen == 0 { WIDTHS[usize::from(terminal)] } else { seen.into() })
}

fn csv(rows: &[Row]) -> String {
    let line = |cells: Vec<String>| cells.join(",") + "\n";
    let cell = |text: &str| {
        if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
    };
    let head = line(rows.first().into_iter().flatten().map(|(name, _)| (*name).to_owned()).collect());
    rows.iter().fold(head, |text, row| text + &line(row.iter().map(|(_, value)| cell(value)).collect()))
}

fn json(rows: &[Row]) -> String {
    let mut out = Out::default();
    out.open('[');
    for row in rows {
        out.next();
        out.open('{');
        for (name, value) in row {
            out.entry(name, &value.as_str().into());
        }
        out.close('}');
    }
    out.close(']');
    out.end()
}

fn json_line(row: &Row) -> String {
    let entries = row.iter().map(|(name, value)| format!("{}: {}", Value::from(*name), Value::from(value.as_str())));
    format!("{{{}}}\n", entries.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_csv_are_quoted_where_they_must_be() {
        let row = ["a", "b,c", "d\"e", "", "f\ng", "h i"].map(|text| ("x", text.to_owned()));
        assert_eq!(csv(&[row]), "x,x,x,x,x,x\na,\"b,c\",\"d\"\"e\",,\"f\ng\",h i\n");
        assert_eq!(csv(&[]), "\n");
    }

    #[test]
    fn what_a_terminal_must_not_see_is_left_to_python() {
        assert!(is_safe("a\tµ\n−"));
        for text in ["\x1b[1m", "a\rb", "\u{202e}", "\u{200b}", "\u{85}"] {
            assert!(!is_safe(text), "{text:?}");
        }
    }
}
