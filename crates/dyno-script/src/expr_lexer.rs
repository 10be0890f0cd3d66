//! Lexer of expressions: tokens up to the end of the (continued) line.

use crate::ScriptError;
use crate::source::{Source, begins_name, continues_name};
use crate::value::parse_double;

/// One token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Token<'a> {
    Integer(i64),
    /// 2^63, which is only valid after a minus sign.
    SmallestMagnitude,
    Double(f64),
    /// `:name`, without the colon.
    Variable(&'a str),
    /// Keyword or name of a function.
    Word(&'a str),
    /// Operator, parenthesis or comma.
    Symbol(&'static str),
    End,
}

/// Token with its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spanned<'a> {
    pub(crate) token: Token<'a>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Symbols, longer ones first, so that the first match is the longest.
const SYMBOLS: &[&str] =
    &["<>", "!=", "<=", ">=", "<<", ">>", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "#", "~", "(", ")", ","];

/// Reads the tokens of an expression that begins at `start`.
///
/// Returns the tokens, of which the last is [`Token::End`], and the offset after the line.
pub(crate) fn tokens<'a>(source: &Source<'a>, start: usize) -> Result<(Vec<Spanned<'a>>, usize), ScriptError> {
    let mut found = Vec::new();
    let mut offset = start;
    loop {
        offset = skip_blanks(source, offset);
        let (token, end) = next(source, offset)?;
        found.push(Spanned { token, start: offset, end });
        if token == Token::End {
            return Ok((found, end));
        }
        offset = end;
    }
}

/// Skips blanks and line continuations.
pub(crate) fn skip_blanks(source: &Source, mut offset: usize) -> usize {
    loop {
        match source.byte(offset) {
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => offset += 1,
            b'\\' => match continuation(source, offset) {
                Some(end) => offset = end,
                None => return offset,
            },
            _ => return offset,
        }
    }
}

/// Returns the offset after a backslash that continues a line, if there is one at `offset`.
pub(crate) fn continuation(source: &Source, offset: usize) -> Option<usize> {
    match (source.byte(offset), source.byte(offset + 1), source.byte(offset + 2)) {
        (b'\\', b'\n', _) => Some(offset + 2),
        (b'\\', b'\r', b'\n') => Some(offset + 3),
        _ => None,
    }
}

fn next<'a>(source: &Source<'a>, start: usize) -> Result<(Token<'a>, usize), ScriptError> {
    let byte = source.byte(start);
    match byte {
        b'\n' => return Ok((Token::End, start + 1)),
        0 => return Ok((Token::End, start)),
        b':' if continues_name(source.byte(start + 1)) => {
            let end = while_at(source, start + 1, continues_name);
            return Ok((Token::Variable(&source.text[start + 1..end]), end));
        }
        b'.' if source.byte(start + 1).is_ascii_digit() => return number(source, start),
        _ if byte.is_ascii_digit() => return number(source, start),
        _ if begins_name(byte) => {
            let end = while_at(source, start, continues_name);
            return Ok((Token::Word(&source.text[start..end]), end));
        }
        _ => {}
    }
    let rest = &source.text.as_bytes()[start..];
    match SYMBOLS.iter().find(|symbol| rest.starts_with(symbol.as_bytes())) {
        Some(symbol) => Ok((Token::Symbol(symbol), start + symbol.len())),
        None => Err(unexpected(source, start)),
    }
}

fn unexpected(source: &Source, start: usize) -> ScriptError {
    let character = source.text[start..].chars().next().unwrap_or(' ');
    let hint = match character {
        ';' => "a backslash command ends with its line; remove the semicolon",
        '\'' | '"' => "expressions have no text values; use \\gset to get text from SQL",
        '^' => "use pow(base, exponent)",
        ':' => "a variable is a colon and a name, without a blank between them",
        '\\' => "to continue on the next line, the backslash must be the last character of the line",
        _ => "use numbers, :variables, functions and operators",
    };
    source.error(start, format!("unexpected character {character:?} in an expression"), hint)
}

fn number<'a>(source: &Source<'a>, start: usize) -> Result<(Token<'a>, usize), ScriptError> {
    let digit = |byte: u8| byte.is_ascii_digit();
    let whole = while_at(source, start, digit);
    let mut end = whole;
    if source.byte(end) == b'.' {
        end = while_at(source, end + 1, digit);
    }
    if matches!(source.byte(end), b'e' | b'E') {
        let sign = usize::from(matches!(source.byte(end + 1), b'+' | b'-'));
        if digit(source.byte(end + 1 + sign)) {
            end = while_at(source, end + 1 + sign, digit);
        }
    }
    let text = &source.text[start..end];
    if end > whole {
        return match parse_double(text) {
            Some(double) => Ok((Token::Double(double), end)),
            None => Err(source.error(
                start,
                format!("{text} does not fit a double"),
                "use a magnitude between 2.3e-308 and 1.7e308",
            )),
        };
    }
    match text.parse::<i64>() {
        Ok(integer) => Ok((Token::Integer(integer), end)),
        Err(_) if text == "9223372036854775808" => Ok((Token::SmallestMagnitude, end)),
        Err(_) => Err(too_large(source, start, text)),
    }
}

/// Returns the error for an integer that does not fit 64 bits.
pub(crate) fn too_large(source: &Source, start: usize, text: &str) -> ScriptError {
    source.error(
        start,
        format!("{} does not fit a 64-bit integer", crate::error::excerpt(text)),
        "the largest integer is 9223372036854775807; write a decimal point for a double",
    )
}

fn while_at(source: &Source, start: usize, holds: impl Fn(u8) -> bool) -> usize {
    let rest = source.text.as_bytes().get(start..).unwrap_or_default();
    start + rest.iter().take_while(|byte| holds(**byte)).count()
}
