//! One SQL command as MariaDB wants it: as text with the values in it, or prepared with the values beside it.

use dyno_script::{Piece, Scope, Sql, SqlKind, Symbols, Value, VarId};

use super::packet::{self, write_text};

/// Ask the server to close the session, to run a text, to prepare one, to run and to forget what was prepared.
pub const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
pub const PREPARE: u8 = 0x16;
pub const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;

/// A file goes in packets of this size.
const FILE_PART_BYTES: usize = 1 << 20;

/// Stands for the statement that was prepared last: it can be run before its number is known (MariaDB 10.2).
pub const LAST_PREPARED: u32 = u32::MAX;

/// Types of values.
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
    /// With `?` in place of the variables.
    marked: String,
    params: Vec<VarId>,
    pieces: Vec<Piece>,
    /// Begin, commit or rollback: always sent as text, and it has no rows.
    pub is_control: bool,
}

impl Statement {
    /// From a script's command. A variable inside quotes that nothing sets stays as it is written.
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

    /// How many values the prepared form takes.
    pub fn values(&self) -> usize {
        self.params.len()
    }

    /// Appends the wish to prepare it.
    pub fn write_prepare(&self, out: &mut Vec<u8>) {
        write_command(PREPARE, self.marked.as_bytes(), out);
    }

    /// Appends the wish to run what was prepared under this number, with the present values.
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

    /// Appends it as text with the values in it. A variable that nothing has set stays as it is written in the script;
    /// `name` gives its name.
    pub fn write_query<'a>(&self, scope: &Scope, name: impl Fn(VarId) -> &'a str, out: &mut Vec<u8>) {
        let start = packet::begin(out);
        out.push(QUERY);
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Var(var) if scope.write_text(*var, out) => {}
                Piece::Var(var) if scope.is_set(*var) => out.extend_from_slice(b"NULL"),
                Piece::Var(var) => {
                    out.push(b':');
                    out.extend_from_slice(name(*var).as_bytes());
                }
            }
        }
        packet::end(out, start, 0);
    }
}

/// Appends a value; its type, or `None` for NULL. Text that is a whole number goes as one: `LIMIT` takes nothing else.
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

/// Appends the wish to forget what was prepared under this number; the server does not answer.
pub fn write_close(number: u32, out: &mut Vec<u8>) {
    write_command(CLOSE, &number.to_le_bytes(), out);
}

/// Appends the wish to run this text.
pub fn write_text_query(text: &str, out: &mut Vec<u8>) {
    write_command(QUERY, text.as_bytes(), out);
}

/// Appends what the server asked for as a file, after its packet of this number; a packet without a body ends it.
pub fn write_file(bytes: &[u8], mut number: u8, out: &mut Vec<u8>) {
    for part in bytes.chunks(FILE_PART_BYTES).chain([&[][..]]) {
        number = number.wrapping_add(1);
        let start = packet::begin(out);
        out.extend_from_slice(part);
        packet::end(out, start, number);
    }
}

/// Appends a command.
pub fn write_command(command: u8, body: &[u8], out: &mut Vec<u8>) {
    let start = packet::begin(out);
    out.push(command);
    out.extend_from_slice(body);
    packet::end(out, start, 0);
}
