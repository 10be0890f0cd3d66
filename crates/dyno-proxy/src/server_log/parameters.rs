//! Parameters of an execution, as written in a log: `parameters: $1 = 'it''s', $2 = NULL`.
//!
//! `log_parameter_max_length` cuts values: `'abc...'`. A complete value may also end with dots, so the caller decides:
//! it knows whether the log has longer values.

use memchr::{memchr, memmem};

/// Parameters in the form of a Bind message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Lengths and bytes; a length of -1 is NULL.
    pub values: Vec<u8>,
    /// Number of parameters.
    pub count: u16,
    /// True if the list could not be parsed to its end.
    pub is_broken: bool,
    /// Length of the longest value that ends in `...`, without the dots [bytes].
    pub cut_at: Option<usize>,
    /// Length of the longest other value [bytes].
    pub longest: usize,
}

impl Parameters {
    /// Parses a DETAIL line; the result is empty if it has no parameters.
    pub fn of(detail: &[u8]) -> Self {
        let mut found = Self::default();
        // In any language: `parameters: `, `Parameters: `, `Parameter: `.
        let Some(begin) = memchr(b':', &detail[..detail.len().min(60)]) else { return found };
        let mut rest = detail[begin + 1..].trim_ascii_start();
        if !rest.starts_with(b"$") {
            return found;
        }
        while !rest.is_empty() {
            let Some(behind) = found.next(rest) else {
                found.is_broken = true;
                break;
            };
            rest = behind;
        }
        found
    }

    /// Parses a failure's CONTEXT line, `unnamed portal with parameters: $1 = '5'`
    /// (`log_parameter_max_length_on_error`); the result is empty if it has no parameters.
    pub fn of_failure(context: &[u8]) -> Self {
        let lines = context.split(|byte| *byte == b'\n');
        let mut begin = 0;
        for line in lines {
            if let Some(at) = memmem::find(line, b" with parameters: $1 = ") {
                // Values may have line ends, so all that follows is parsed; behind the last may stand another line.
                let mut found = Self::of(&context[begin + at + 5..]);
                found.is_broken &= found.count == 0;
                return found;
            }
            begin += line.len() + 1;
        }
        Self::default()
    }

    /// Parses one parameter; returns the rest of the text.
    fn next<'a>(&mut self, rest: &'a [u8]) -> Option<&'a [u8]> {
        let rest = rest.strip_prefix(b"$")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number: u16 = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        if number != self.count.checked_add(1)? {
            return None;
        }
        let rest = rest[digits..].strip_prefix(b" = ")?;
        let behind = if let Some(behind) = rest.strip_prefix(b"NULL") {
            self.values.extend_from_slice(&(-1_i32).to_be_bytes());
            behind
        } else {
            self.quoted(rest.strip_prefix(b"'")?)?
        };
        self.count = number;
        if behind.is_empty() { Some(behind) } else { behind.strip_prefix(b", ") }
    }

    /// Adds a value up to its closing quote; quotes within the value are doubled.
    fn quoted<'a>(&mut self, mut rest: &'a [u8]) -> Option<&'a [u8]> {
        let place = self.values.len();
        self.values.extend_from_slice(&[0; 4]);
        loop {
            let end = memchr(b'\'', rest)?;
            self.values.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            match rest.strip_prefix(b"'") {
                Some(behind) => {
                    self.values.push(b'\'');
                    rest = behind;
                }
                None => break,
            }
        }
        let length = self.values.len() - place - 4;
        self.values[place..place + 4].copy_from_slice(&i32::try_from(length).ok()?.to_be_bytes());
        if self.values[place + 4..].ends_with(b"...") {
            self.cut_at = self.cut_at.max(Some(length - 3));
        } else {
            self.longest = self.longest.max(length);
        }
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(detail: &[u8]) -> Vec<Option<Vec<u8>>> {
        let found = Parameters::of(detail);
        assert!(!found.is_broken);
        let (mut at, mut list) = (0, Vec::new());
        for _ in 0..found.count {
            let length = i32::from_be_bytes(found.values[at..at + 4].try_into().expect("a length"));
            at += 4;
            list.push(usize::try_from(length).ok().map(|length| found.values[at..at + length].to_vec()));
            at += usize::try_from(length).unwrap_or(0);
        }
        assert_eq!(at, found.values.len());
        list
    }

    #[test]
    fn values_have_quotes_line_ends_and_what_looks_like_another_parameter() {
        let detail = b"parameters: $1 = 'it''s', $2 = NULL, $3 = '', $4 = 'a\nb, $5 = ''x''', $5 = 'NULL'";
        let text = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(values(detail), [text("it's"), None, text(""), text("a\nb, $5 = 'x'"), text("NULL")]);
        assert_eq!(values(b"Parameters: $1 = '5'"), [text("5")]);
        assert!(values(b"").is_empty() && values(b"prepare: PREPARE p AS SELECT $1").is_empty());
    }

    #[test]
    fn a_list_that_is_cut_or_out_of_order_is_broken() {
        for detail in ["$1 = 'a", "$1 = 'a', $3 = 'b'", "$1 = 'a' $2", "$1 = 5", "$1", "$99999999 = 'a'"] {
            assert!(Parameters::of(format!("parameters: {detail}").as_bytes()).is_broken, "{detail}");
        }
    }

    #[test]
    fn what_failed_has_its_parameters_in_its_context() {
        let context = b"PL/pgSQL function f() line 1 at RAISE\nunnamed portal with parameters: $1 = 'a\nb', $2 = NULL";
        let found = Parameters::of_failure(context);
        assert_eq!((found.count, found.is_broken), (2, false));
        assert_eq!(Parameters::of_failure(b"extended query with parameters: $1 = '0'").count, 1);
        assert_eq!(Parameters::of_failure(b"SQL statement \"select 1\""), Parameters::default());
    }

    #[test]
    fn a_value_that_may_be_cut_tells_its_length() {
        let found = Parameters::of(b"parameters: $1 = 'abcdefgh...', $2 = 'xy'");
        assert_eq!((found.cut_at, found.longest), (Some(8), 2));
    }
}
