//! The parameters of a wait, taken apart when somebody asks.

use super::lexer::bits;
use super::record::{Batch, Wait};

/// The parameters of a wait, in the order of the line: name and value.
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    rest: &'a [u8],
}

impl Batch {
    /// The parameters of a wait: `file#` = 10, `block#` = 43953, `blocks` = 1. A name may hold
    /// blanks, be a number, or be empty; a value stands for itself in 64 bits.
    pub fn parameters(&self, wait: &Wait) -> Parameters<'_> {
        Parameters::of(self.bytes_of(wait.parameters))
    }
}

impl<'a> Parameters<'a> {
    /// The parameters in a text such as `file#=10 block#=43953 class#=1`.
    pub fn of(text: &'a [u8]) -> Self {
        Parameters { rest: text }
    }
}

impl<'a> Iterator for Parameters<'a> {
    type Item = (&'a [u8], i64);

    fn next(&mut self) -> Option<(&'a [u8], i64)> {
        let text = self.rest;
        let mut from = 0;
        loop {
            let equals = from + memchr::memchr(b'=', text.get(from..)?)?;
            let value = &text[equals + 1..];
            let len = memchr::memchr(b' ', value).unwrap_or(value.len());
            if let Ok(number) = bits(&value[..len]) {
                self.rest = value.get(len + 1..).unwrap_or_default();
                return Some((&text[..equals], number));
            }
            from = equals + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_apart(text: &str) -> Vec<(String, i64)> {
        Parameters::of(text.as_bytes())
            .map(|(name, value)| (String::from_utf8_lossy(name).into_owned(), value))
            .collect()
    }

    fn pairs(pairs: &[(&str, i64)]) -> Vec<(String, i64)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn names_with_blanks_signs_digits_and_none() {
        assert_eq!(
            taken_apart("file number=201 first dba=4355 block cnt=1"),
            pairs(&[("file number", 201), ("first dba", 4355), ("block cnt", 1)])
        );
        assert_eq!(
            taken_apart("name|mode=1414332419 2=65683 0=2"),
            pairs(&[("name|mode", 1_414_332_419), ("2", 65_683), ("0", 2)])
        );
        assert_eq!(taken_apart("duration=-1 =0 =0"), pairs(&[("duration", -1), ("", 0), ("", 0)]));
        assert_eq!(
            taken_apart("idn=1220421353 value=18446744073709551615 where=5241669798475071594"),
            pairs(&[("idn", 1_220_421_353), ("value", -1), ("where", 5_241_669_798_475_071_594)])
        );
    }

    #[test]
    fn what_is_no_parameter_ends_the_list() {
        assert_eq!(taken_apart("file#=1 blo"), pairs(&[("file#", 1)]));
        assert_eq!(taken_apart("a=b=3 c"), pairs(&[("a=b", 3)]));
        assert_eq!(taken_apart(""), pairs(&[]));
    }
}
