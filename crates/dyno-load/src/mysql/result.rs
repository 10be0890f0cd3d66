//! Rows that a script keeps, converted to PostgreSQL's text form.
//!
//! [`columns`](crate::wire::message::columns) reads that form. Rows are converted only for scripts that keep results,
//! because copying results costs time.

use std::io::Write;

use super::packet::Reader;
use super::statement::kind;
use crate::wire::WireError;

const UNSIGNED: u64 = 0x20;

/// One column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    name: Vec<u8>,
    pub(super) kind: u8,
    pub(super) unsigned: bool,
}

impl Column {
    /// Parses the body of a column's description.
    ///
    /// # Errors
    /// The body is too short.
    pub fn parse(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Reader(body);
        for _ in 0..4 {
            body.text()?; // catalogue, schema, table, its own name
        }
        let name = body.text()?.unwrap_or_default().to_vec();
        body.text()?;
        body.counted()?;
        body.take(6)?; // character set and length
        let kind = body.number(1)? as u8;
        let unsigned = body.number(2)? & UNSIGNED != 0;
        Ok(Self { name, kind, unsigned })
    }
}

/// Writes the names of columns in the form of PostgreSQL's `RowDescription`.
pub fn describe(columns: &[Column], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
    for column in columns {
        out.extend(column.name.iter().filter(|&&byte| byte != 0));
        out.extend_from_slice(&[0; 19]);
    }
}

/// Converts a row in MariaDB's text form to the form of PostgreSQL's `DataRow`.
///
/// # Errors
/// The body is too short.
pub fn text_row(body: &[u8], columns: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let mut body = Reader(body);
    begin(columns, out);
    for _ in 0..columns {
        value(body.text()?, out);
    }
    Ok(())
}

/// Converts a row of a prepared statement to the form of PostgreSQL's `DataRow`.
///
/// # Errors
/// The body is too short.
pub fn binary_row(body: &[u8], columns: &[Column], out: &mut Vec<u8>) -> Result<(), WireError> {
    let mut body = Reader(body);
    body.take(1)?;
    let nulls = body.take((columns.len() + 9) / 8)?;
    begin(columns.len(), out);
    let mut text = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        if nulls[(at + 2) / 8] >> ((at + 2) % 8) & 1 == 1 {
            value(None, out);
            continue;
        }
        text.clear();
        value_text(column, &mut body, &mut text)?;
        value(Some(&text), out);
    }
    Ok(())
}

fn begin(columns: usize, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&(columns as u16).to_be_bytes());
}

fn value(text: Option<&[u8]>, out: &mut Vec<u8>) {
    match text {
        None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        Some(text) => {
            out.extend_from_slice(&(text.len() as u32).to_be_bytes());
            out.extend_from_slice(text);
        }
    }
}

fn value_text(column: &Column, body: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
    let whole = |bytes: usize, body: &mut Reader<'_>, out: &mut Vec<u8>| -> Result<(), WireError> {
        let number = body.number(bytes)?;
        let shift = 64 - 8 * bytes as u32;
        let signed = (number << shift) as i64 >> shift;
        write(out, if column.unsigned { format!("{number}") } else { format!("{signed}") });
        Ok(())
    };
    match column.kind {
        kind::TINY => whole(1, body, out),
        kind::SHORT | kind::YEAR => whole(2, body, out),
        // A 24-bit number is sent in 32 bits.
        kind::LONG | kind::INT24 => whole(4, body, out),
        kind::LONGLONG => whole(8, body, out),
        kind::FLOAT => {
            write(out, f32::from_bits(body.number(4)? as u32));
            Ok(())
        }
        kind::DOUBLE => {
            write(out, f64::from_bits(body.number(8)?));
            Ok(())
        }
        kind::DATE | kind::DATETIME | kind::TIMESTAMP => point(column.kind, body, out),
        kind::TIME => span(body, out),
        kind::NULL => Ok(()),
        _ => {
            out.extend_from_slice(body.text()?.unwrap_or_default());
            Ok(())
        }
    }
}

fn write(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    // Writing into memory does not fail.
    let _ = write!(out, "{value}");
}

/// Writes a date, or a date and time, as text; the server omits trailing parts that are zero.
fn point(kind: u8, body: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
    let mut body = Reader(body.text()?.unwrap_or_default());
    let mut part = |bytes| if body.0.is_empty() { Ok(0) } else { body.number(bytes) };
    let (year, month, day) = (part(2)?, part(1)?, part(1)?);
    let (hour, minute, second, micros) = (part(1)?, part(1)?, part(1)?, part(4)?);
    write(out, format_args!("{year:04}-{month:02}-{day:02}"));
    if kind != kind::DATE {
        write(out, format_args!(" {hour:02}:{minute:02}:{second:02}"));
    }
    if micros > 0 {
        write(out, format_args!(".{micros:06}"));
    }
    Ok(())
}

/// Writes a duration as text; days are converted to hours.
fn span(body: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
    let mut body = Reader(body.text()?.unwrap_or_default());
    let mut part = |bytes| if body.0.is_empty() { Ok(0) } else { body.number(bytes) };
    let (negative, days) = (part(1)?, part(4)?);
    let (hour, minute, second, micros) = (part(1)?, part(1)?, part(1)?, part(4)?);
    let sign = if negative == 0 { "" } else { "-" };
    write(out, format_args!("{sign}{:02}:{minute:02}:{second:02}", days.saturating_mul(24) + hour));
    if micros > 0 {
        write(out, format_args!(".{micros:06}"));
    }
    Ok(())
}
