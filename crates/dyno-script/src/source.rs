//! Text of a script, and positions in it.

use crate::ScriptError;

/// Text of a script while it is compiled; offsets are in bytes.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    /// Offset of each line's first byte.
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(name: &'a str, text: &'a str) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(starts.map(|(offset, _)| offset + 1)).collect();
        Self { name, text, lines }
    }

    /// Returns the byte at an offset; 0 after the end (a script contains no such byte).
    #[inline]
    pub(crate) fn byte(&self, offset: usize) -> u8 {
        self.text.as_bytes().get(offset).copied().unwrap_or(0)
    }

    /// Returns the line of an offset, counted from 1.
    pub(crate) fn line(&self, offset: usize) -> u32 {
        self.lines.partition_point(|start| *start <= offset) as u32
    }

    /// Returns the column of an offset in characters, counted from 1.
    fn column(&self, offset: usize) -> u32 {
        let start = self.lines[self.line(offset) as usize - 1];
        let before = self.text.get(start..offset).unwrap_or_default();
        before.chars().count() as u32 + 1
    }

    pub(crate) fn error(&self, offset: usize, message: impl Into<String>, hint: impl Into<String>) -> ScriptError {
        ScriptError {
            file: self.name.to_owned(),
            line: self.line(offset),
            column: self.column(offset),
            message: message.into(),
            hint: hint.into(),
        }
    }
}

/// Returns true if a byte can begin a variable's name; bytes of non-ASCII characters can.
pub(crate) fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Returns true if a byte can follow the first one in a variable's name.
pub(crate) fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

/// Returns true if a text is a valid variable name.
pub(crate) fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(begins_name) && text.bytes().all(continues_name)
}
