//! Quotes and comments of SQL, inside of which a semicolon does not end a command.

use crate::ScriptError;
use crate::source::{begins_name, continues_name};
use crate::sql_lexer::Lexer;

impl Lexer<'_> {
    pub(crate) fn line_comment(&mut self) {
        let start = self.offset;
        self.skip_while(|byte| byte != b'\n' && byte != b'\r');
        if self.leading {
            self.copied = self.offset; // what is sent begins after it
        } else {
            self.variables_within(start);
        }
    }

    pub(crate) fn block_comment(&mut self) -> Result<(), ScriptError> {
        let start = self.offset;
        self.leading = false; // it may be a hint for the planner
        let mut depth = 0;
        loop {
            match (self.byte(0), self.byte(1)) {
                (0, _) => return Err(self.unclosed(start, "comment", "close it with */")),
                (b'/', b'*') => {
                    depth += 1;
                    self.offset += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.offset += 2;
                    if depth == 0 {
                        self.variables_within(start);
                        return Ok(());
                    }
                }
                _ => self.offset += 1,
            }
        }
    }

    /// Scans a string, including strings that continue it on later lines.
    ///
    /// Backslashes are escapes only in an E'' string (`escapes`).
    pub(crate) fn string(&mut self, escapes: bool) -> Result<(), ScriptError> {
        let start = self.offset;
        self.offset += 1;
        loop {
            match (self.byte(0), self.byte(1)) {
                (0, _) => return Err(self.unclosed(start, "string", "close it with a quote")),
                (b'\'', b'\'') => self.offset += 2,
                (b'\\', next) if escapes && next != 0 => self.offset += 1 + self.character(1),
                (b'\'', _) => {
                    self.offset += 1;
                    match self.continued() {
                        Some(quote) => self.offset = quote + 1,
                        None => break,
                    }
                }
                _ => self.offset += 1,
            }
        }
        self.variables_within(start);
        Ok(())
    }

    /// Returns the offset of the quote that continues the string that has just ended, if there is one; a line break
    /// must be in between.
    fn continued(&self) -> Option<usize> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
        let rest = self.source.text.as_bytes().get(self.offset..)?;
        let blanks = rest.iter().take_while(|byte| blank(byte)).count();
        let broken = rest[..blanks].iter().any(|byte| matches!(byte, b'\n' | b'\r'));
        (broken && rest.get(blanks) == Some(&b'\'')).then_some(self.offset + blanks)
    }

    /// Returns the length of the character that begins `ahead` bytes after the current offset [bytes].
    fn character(&self, ahead: usize) -> usize {
        let rest = self.source.text.get(self.offset + ahead..).unwrap_or_default();
        rest.chars().next().map_or(1, char::len_utf8)
    }

    /// Scans a name in double quotes; two double quotes within the name stand for one.
    pub(crate) fn quoted(&mut self, quote: u8, what: &str) -> Result<(), ScriptError> {
        let start = self.offset;
        self.offset += 1;
        loop {
            match self.byte(0) {
                0 => return Err(self.unclosed(start, what, "close it with a double quote")),
                byte if byte == quote && self.byte(1) == quote => self.offset += 2,
                byte if byte == quote => break,
                _ => self.offset += 1,
            }
        }
        self.offset += 1;
        self.variables_within(start);
        Ok(())
    }

    /// Scans a string in dollar quotes, or a single dollar.
    pub(crate) fn dollar(&mut self) -> Result<(), ScriptError> {
        let start = self.offset;
        self.offset += 1;
        if begins_name(self.byte(0)) {
            self.skip_while(continues_name);
        }
        if self.byte(0) != b'$' {
            self.offset = start + 1;
            return Ok(());
        }
        let tag = &self.source.text[start..=self.offset];
        let body = start + tag.len();
        match self.source.text[body..].find(tag) {
            Some(length) => {
                self.offset = body + length + tag.len();
                self.variables_within(start);
                Ok(())
            }
            None => Err(self.unclosed(start, "dollar-quoted string", &format!("close it with {tag}"))),
        }
    }

    /// Records the variables between `start` and the current offset as quoted variables.
    fn variables_within(&mut self, start: usize) {
        let end = self.offset;
        self.offset = start;
        while self.offset < end {
            if self.byte(0) != b':' {
                self.offset += 1;
            } else if begins_name(self.byte(1)) {
                self.variable(self.offset, true);
            } else {
                self.skip_while(|byte| byte == b':');
            }
        }
        self.offset = end;
    }
}
