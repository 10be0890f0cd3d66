//! Lexer of SQL: where a command ends, and where it has variables.
//!
//! A command ends at a semicolon outside of quotes, comments, parentheses and the body of an SQL-standard function
//! (`create function ... begin atomic ... end`), before a backslash command, or at the end of the script. `\;` joins
//! two statements into one command, and `\:` is a colon. Strings follow `standard_conforming_strings = on`.

use crate::ScriptError;
use crate::source::{Source, begins_name, continues_name};

/// Part of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fragment {
    Text(String),
    /// `:name`, its position, and whether it is inside quotes or a comment.
    Variable {
        name: String,
        offset: usize,
        quoted: bool,
    },
}

/// How a command ended, and the offset at which to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// After the semicolon.
    Semicolon(usize),
    /// At the backslash.
    Backslash(usize),
    EndOfScript,
}

/// SQL command, or only blanks and comments.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) fragments: Vec<Fragment>,
    /// Offset of the first character that is neither in a blank nor in a comment.
    pub(crate) start: Option<usize>,
    /// First words, in lower case.
    pub(crate) words: Vec<String>,
    /// True if `\;` joins statements.
    pub(crate) compound: bool,
    pub(crate) ended: Ended,
}

/// Number of first words that are kept for a command; `create or replace function` needs four.
const WORDS: usize = 4;

/// Scans one command from `offset` on.
pub(crate) fn scan(source: &Source, offset: usize) -> Result<Scanned, ScriptError> {
    let mut lexer = Lexer {
        source,
        offset,
        leading: true,
        copied: offset,
        fragments: Vec::new(),
        start: None,
        words: Vec::new(),
        compound: false,
        parentheses: Vec::new(),
        blocks: 0,
    };
    let ended = lexer.command()?;
    Ok(Scanned { fragments: lexer.fragments, start: lexer.start, words: lexer.words, compound: lexer.compound, ended })
}

/// State of the scan within a command.
pub(crate) struct Lexer<'s> {
    pub(crate) source: &'s Source<'s>,
    pub(crate) offset: usize,
    /// True while only blanks and line comments have been read.
    pub(crate) leading: bool,
    /// Offset up to which the text has already been copied to `fragments`.
    pub(crate) copied: usize,
    fragments: Vec<Fragment>,
    start: Option<usize>,
    words: Vec<String>,
    compound: bool,
    /// Offsets of the open parentheses.
    parentheses: Vec<usize>,
    /// Nesting depth of `begin` and `case` in a function's body.
    blocks: usize,
}

impl Lexer<'_> {
    pub(crate) fn byte(&self, ahead: usize) -> u8 {
        self.source.byte(self.offset + ahead)
    }

    fn command(&mut self) -> Result<Ended, ScriptError> {
        loop {
            let here = self.offset;
            match (self.byte(0), self.byte(1)) {
                (0, _) => {
                    self.check_parentheses()?;
                    self.copy_until(here);
                    return Ok(Ended::EndOfScript);
                }
                (b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, _) => self.offset += 1,
                (b'-', b'-') => self.line_comment(),
                (b'/', b'*') => self.block_comment()?,
                (b';', _) if self.parentheses.is_empty() && self.blocks == 0 => {
                    self.begin();
                    self.copy_until(here);
                    return Ok(Ended::Semicolon(here + 1));
                }
                (b'\\', escaped @ (b';' | b':')) => self.escape(escaped),
                (b'\\', _) => {
                    self.check_parentheses()?;
                    self.copy_until(here);
                    return Ok(Ended::Backslash(here));
                }
                _ => self.token()?,
            }
        }
    }

    /// Records that the command has content here; returns the current offset.
    fn begin(&mut self) -> usize {
        self.leading = false;
        self.start.get_or_insert(self.offset);
        self.offset
    }

    /// Scans a token that is neither a blank, a comment nor an end.
    fn token(&mut self) -> Result<(), ScriptError> {
        let here = self.begin();
        match self.byte(0) {
            b'\'' => return self.string(false),
            b'"' => return self.quoted(b'"', "quoted name"),
            b'$' => return self.dollar(),
            b':' => self.colon(),
            b'(' => {
                self.parentheses.push(here);
                self.offset += 1;
            }
            b')' => {
                self.parentheses.pop();
                self.offset += 1;
            }
            b'e' | b'E' if self.byte(1) == b'\'' => {
                self.offset += 1;
                return self.string(true);
            }
            byte if begins_name(byte) => self.word(),
            byte if byte.is_ascii_digit() => self.skip_while(|byte| byte.is_ascii_digit()),
            _ => self.offset += 1,
        }
        Ok(())
    }

    fn escape(&mut self, escaped: u8) {
        let here = self.begin();
        self.copy_until(here);
        self.copied = here + 1; // drop the backslash
        self.offset = here + 2;
        if escaped == b';' {
            self.compound = true;
            self.words.clear();
        }
    }

    fn word(&mut self) {
        let start = self.offset;
        self.skip_while(|byte| continues_name(byte) || byte == b'$');
        let word = self.source.text[start..self.offset].to_ascii_lowercase();
        if self.parentheses.is_empty() && self.creates_function() {
            match word.as_str() {
                "begin" => self.blocks += 1,
                "case" if self.blocks > 0 => self.blocks += 1,
                "end" => self.blocks = self.blocks.saturating_sub(1),
                _ => {}
            }
        }
        if self.words.len() < WORDS {
            self.words.push(word);
        }
    }

    fn creates_function(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        matches!(
            words[..],
            ["create", "function" | "procedure", ..] | ["create", "or", "replace", "function" | "procedure"]
        )
    }

    /// Scans a variable, or colons that are part of a cast, an assignment or a slice.
    fn colon(&mut self) {
        let here = self.offset;
        if begins_name(self.byte(1)) {
            self.variable(here, false);
        } else {
            self.skip_while(|byte| byte == b':');
        }
    }

    /// Scans the variable whose colon is at `colon`.
    pub(crate) fn variable(&mut self, colon: usize, quoted: bool) {
        self.copy_until(colon);
        self.offset = colon + 1;
        self.skip_while(continues_name);
        let name = self.source.text[colon + 1..self.offset].to_owned();
        self.fragments.push(Fragment::Variable { name, offset: colon, quoted });
        self.copied = self.offset;
    }

    pub(crate) fn skip_while(&mut self, holds: impl Fn(u8) -> bool) {
        let rest = self.source.text.as_bytes().get(self.offset..).unwrap_or_default();
        self.offset += rest.iter().take_while(|byte| holds(**byte)).count();
    }

    fn copy_until(&mut self, end: usize) {
        let text = &self.source.text[self.copied..end];
        match self.fragments.last_mut() {
            _ if text.is_empty() => {}
            Some(Fragment::Text(last)) => last.push_str(text),
            _ => self.fragments.push(Fragment::Text(text.to_owned())),
        }
        self.copied = end;
    }

    fn check_parentheses(&self) -> Result<(), ScriptError> {
        match self.parentheses.last() {
            Some(open) => Err(self.unclosed(*open, "parenthesis", "close it with )")),
            None => Ok(()),
        }
    }

    pub(crate) fn unclosed(&self, start: usize, what: &str, hint: &str) -> ScriptError {
        self.source.error(start, format!("this {what} is not closed"), hint)
    }
}
