//! SQL command in MariaDB's forms: as text that contains the values, or prepared with separate values.

use dyno_script::{Piece, Scope, Sql, SqlKind, Symbols, Value, VarId};

use super::packet::{self, write_text};
use crate::wire::statement::write_pieces;

/// Command bytes: close the session, run SQL text, prepare, execute, and close a prepared statement.
pub const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
pub const PREPARE: u8 = 0x16;
pub const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;

/// Size of a packet of data that is sent as a file [bytes].
const FILE_PART_BYTES: usize = 1 << 20;

/// Stands for the number of the statement that was prepared last, so that it can be executed before its number is known
/// (MariaDB 10.2).
pub const LAST_PREPARED: u32 = u32::MAX;

/// Type codes of values.
pub mod kind {
    pub const TINY: u8 = 0x01;
    pub const SHORT: u8 = 0x02;
    pub const LONG: u8 = 0x03;
    pub const FLOAT: u8 = 0x04;
    pub const DOUBLE: u8 = 0x05;
    pub const NULL: u8 = 0x06;
    pub const TIMESTAMP: u8 = 0x07;
    pub const LONGLONG: u8 = 0x08;
    pub const INT24: u8 = 0x09;
    pub const DATE: u8 = 0x0a;
    pub const TIME: u8 = 0x0b;
    pub const DATETIME: u8 = 0x0c;
    pub const YEAR: u8 = 0x0d;
    pub const VAR_STRING: u8 = 0xfd;
}

/// One SQL command.
#[derive(Debug, Clone, Default)]
pub struct Statement {
    /// Text with `?` in place of the variables.
    marked: String,
    params: Vec<VarId>,
    pieces: Vec<Piece>,
    /// True for begin, commit and rollback, which are always sent as text and have no rows.
    pub is_control: bool,
}

impl Statement {
    /// Creates a statement from a script's command.
    ///
    /// A variable inside quotes remains literal text in the prepared form.
    pub fn new(sql: &Sql, symbols: &Symbols) -> Self {
        let mut marked = String::new();
        let mut params = Vec::new();
        for piece in &sql.pieces {
            match piece {
                Piece::Text(text) => marked.push_str(text),
                Piece::Var(var) if sql.quoted.contains(var) => {
                    marked.push(':');
                    marked.push_str(symbols.name(*var));
                }
                Piece::Var(var) => {
                    marked.push('?');
                    params.push(*var);
                }
            }
        }
        Self { marked, params, pieces: sql.pieces.clone(), is_control: sql.kind != SqlKind::Other }
    }

    /// Returns how many values the prepared form needs.
    pub fn values(&self) -> usize {
        self.params.len()
    }

    /// Appends the request to prepare the statement.
    pub fn write_prepare(&self, out: &mut Vec<u8>) {
        write_command(PREPARE, self.marked.as_bytes(), out);
    }

    /// Appends the request to execute the prepared statement with this number, with the current values.
    #[inline]
    pub fn write_execute(&self, number: u32, scope: &Scope, out: &mut Vec<u8>) {
        let start = packet::begin(out);
        out.push(EXECUTE);
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&[0, 1, 0, 0, 0]); // no cursor, once
        let count = self.params.len();
        if count > 0 {
            let nulls = out.len();
            out.resize(nulls + count.div_ceil(8), 0);
            out.push(1); // types follow
            let types = out.len();
            out.resize(types + 2 * count, 0);
            for (at, &var) in self.params.iter().enumerate() {
                let found = write_value(scope.get(var), out);
                out[types + 2 * at] = found.unwrap_or(kind::NULL);
                out[nulls + at / 8] |= u8::from(found.is_none()) << (at % 8);
            }
        }
        packet::end(out, start, 0);
    }

    /// Appends the request to run the statement as text that contains the values.
    ///
    /// A variable without a value is sent as it is written in the script.
    pub fn write_query(&self, scope: &Scope, symbols: &Symbols, out: &mut Vec<u8>) {
        let start = packet::begin(out);
        out.push(QUERY);
        write_pieces(&self.pieces, scope, symbols, out);
        packet::end(out, start, 0);
    }
}

/// Appends a value; returns its type code, or `None` for NULL.
///
/// Text in the canonical form of an integer is sent as an integer, because `LIMIT` accepts nothing else.
fn write_value(value: Option<Value>, out: &mut Vec<u8>) -> Option<u8> {
    match value? {
        Value::Null => return None,
        Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::Double(number) => {
            out.extend_from_slice(&number.to_le_bytes());
            return Some(kind::DOUBLE);
        }
        Value::Bool(truth) => {
            out.push(truth.into());
            return Some(kind::TINY);
        }
        Value::Text(text) => match text.parse::<i64>() {
            Ok(number) if *number.to_string() == *text => out.extend_from_slice(&number.to_le_bytes()),
            _ => {
                write_text(text.as_bytes(), out);
                return Some(kind::VAR_STRING);
            }
        },
    }
    Some(kind::LONGLONG)
}

/// Appends the request to close the prepared statement with this number; the server does not answer it.
pub fn write_close(number: u32, out: &mut Vec<u8>) {
    write_command(CLOSE, &number.to_le_bytes(), out);
}

/// Appends the request to run this text.
pub fn write_text_query(text: &str, out: &mut Vec<u8>) {
    write_command(QUERY, text.as_bytes(), out);
}

/// Appends the data that the server requested as a file, in packets numbered after `number`; an empty packet ends the
/// data.
pub fn write_file(bytes: &[u8], mut number: u8, out: &mut Vec<u8>) {
    for part in bytes.chunks(FILE_PART_BYTES).chain([&[][..]]) {
        number = number.wrapping_add(1);
        let start = packet::begin(out);
        out.extend_from_slice(part);
        packet::end(out, start, number);
    }
}

/// Appends a command byte and its body.
pub fn write_command(command: u8, body: &[u8], out: &mut Vec<u8>) {
    let start = packet::begin(out);
    out.push(command);
    out.extend_from_slice(body);
    packet::end(out, start, 0);
}
