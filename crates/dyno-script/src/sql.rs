//! Conversion of a scanned command to one that both protocols can send.

use crate::ScriptError;
use crate::command::{Piece, Sql, SqlKind};
use crate::names::Names;
use crate::source::Source;
use crate::sql_lexer::{Fragment, Scanned};

/// Largest number of parameters of a statement: the protocol counts them in 16 bits.
const MOST_PARAMETERS: usize = 65_535;

/// Longest label [characters].
const LABEL: usize = 200;

/// Returns the command, or `None` if there is nothing to send.
pub(crate) fn build(source: &Source, mut scanned: Scanned, names: &mut Names) -> Result<Option<Sql>, ScriptError> {
    let Some(start) = scanned.start else { return Ok(None) };
    trim(&mut scanned.fragments);
    let mut sql = Sql {
        kind: if scanned.compound { SqlKind::Other } else { kind(&scanned.words) },
        text: String::new(),
        params: Vec::new(),
        pieces: Vec::new(),
        quoted: Vec::new(),
        compound: scanned.compound,
        store: None,
        line: source.line(start),
        label: label(&scanned.fragments),
    };
    for fragment in scanned.fragments {
        match fragment {
            Fragment::Text(text) => {
                sql.text.push_str(&text);
                sql.pieces.push(Piece::Text(text));
            }
            Fragment::Variable { name, quoted: true, .. } => {
                let var = names.mention(&name);
                sql.text.push(':');
                sql.text.push_str(&name);
                sql.pieces.push(Piece::Var(var));
                sql.quoted.push(var);
            }
            Fragment::Variable { name, offset, .. } => {
                if sql.params.len() == MOST_PARAMETERS {
                    return Err(source.error(
                        offset,
                        format!("more than {MOST_PARAMETERS} variables in one statement"),
                        "divide the statement",
                    ));
                }
                let var = names.read(source, &name, offset);
                sql.pieces.push(Piece::Var(var));
                sql.params.push(var);
                sql.text.push('$');
                sql.text.push_str(&sql.params.len().to_string());
            }
        }
    }
    Ok(Some(sql))
}

/// Removes blanks at both ends.
fn trim(fragments: &mut Vec<Fragment>) {
    if let Some(Fragment::Text(first)) = fragments.first_mut() {
        *first = first.trim_start().to_owned();
    }
    if let Some(Fragment::Text(last)) = fragments.last_mut() {
        last.truncate(last.trim_end().len());
    }
    fragments.retain(|fragment| !matches!(fragment, Fragment::Text(text) if text.is_empty()));
}

fn kind(words: &[String]) -> SqlKind {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["begin", ..] | ["start", "transaction", ..] => SqlKind::Begin,
        ["commit" | "rollback", "prepared", ..]
        | ["rollback", "to", ..]
        | ["rollback", "work" | "transaction", "to", ..] => SqlKind::Other,
        ["commit" | "end", ..] => SqlKind::Commit,
        ["rollback" | "abort", ..] => SqlKind::Rollback,
        _ => SqlKind::Other,
    }
}

/// Returns the command on one line, truncated if it is long.
fn label(fragments: &[Fragment]) -> String {
    let mut text = String::new();
    for fragment in fragments {
        match fragment {
            Fragment::Text(part) => text.push_str(part),
            Fragment::Variable { name, .. } => {
                text.push(':');
                text.push_str(name);
            }
        }
    }
    let mut line = String::new();
    for word in text.split(|character: char| character.is_whitespace() || character.is_control()) {
        if !word.is_empty() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    if let Some((end, _)) = line.char_indices().nth(LABEL) {
        let end = line[..end].char_indices().nth_back(2).map_or(0, |(place, _)| place);
        line.truncate(end);
        line.push_str("...");
    }
    line
}
