//! A script's text, and the places in it.

use crate::ScriptError;

/// A script while it is compiled. Offsets are in bytes.
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

    /// The byte at an offset; 0 behind the end (a script has no such byte).
    #[inline]
    pub(crate) fn byte(&self, offset: usize) -> u8 {
        self.text.as_bytes().get(offset).copied().unwrap_or(0)
    }

    /// Line of an offset, from 1.
    pub(crate) fn line(&self, offset: usize) -> u32 {
        self.lines.partition_point(|start| *start <= offset) as u32
    }

    /// Column of an offset in characters, from 1.
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

/// Whether a byte can begin a variable's name. Bytes of non-ASCII characters can.
pub(crate) fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Whether a byte can stand in a variable's name behind the first.
pub(crate) fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

/// Whether a text is a variable's name.
pub(crate) fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(begins_name) && text.bytes().all(continues_name)
}
