//! Parameters of a wait, parsed on demand.

use super::events::Names;
use super::lexer::bits;
use super::record::{Batch, NONE, Wait};
use super::statements::hash64;

/// Iterator over the parameters of a wait, in the order of the line: name and value.
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    rest: &'a [u8],
}

impl Batch {
    /// Returns the parameters of a wait: `file#` = 10, `block#` = 43953, `blocks` = 1. A name may contain blanks, be a
    /// number, or be empty; a value uses all 64 bits.
    pub fn parameters(&self, wait: &Wait) -> Parameters<'_> {
        Parameters::of(self.bytes_of(wait.parameters))
    }
}

impl<'a> Parameters<'a> {
    /// Parses the parameters in a text such as `file#=10 block#=43953 class#=1`.
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

/// Names of the parameters of a file's waits.
///
/// The waits of one event nearly always have the same names; they are compared with those of the last wait, and only
/// the numbers are parsed.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    names: Names,
    /// Layouts by the number of the event.
    last: Vec<Layout>,
    joined: Vec<u8>,
}

/// Names of one wait's parameters: each with its `=` and, except for the first, the blank before.
#[derive(Clone, Debug, Default)]
struct Layout {
    number: u32,
    names: Vec<Vec<u8>>,
}

impl Layout {
    /// Returns the first values, if the text has these names and plain numbers.
    #[inline]
    fn values(&self, text: &[u8]) -> Option<[i64; 3]> {
        let mut values = [NONE; 3];
        let mut rest = text;
        for (at, name) in self.names.iter().enumerate() {
            let value = rest.strip_prefix(name.as_slice())?;
            let len = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if !(1..19).contains(&len) {
                return None;
            }
            if let Some(place) = values.get_mut(at) {
                *place = value[..len].iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
            }
            rest = &value[len..];
        }
        (rest.is_empty() && !self.names.is_empty()).then_some(values)
    }
}

impl Layouts {
    /// Returns the number of the joined names of a wait's parameters, and the first three values.
    #[inline]
    pub fn take_apart(&mut self, event: u32, text: &[u8]) -> (u32, [i64; 3]) {
        if let Some(layout) = self.last.get(event as usize)
            && let Some(values) = layout.values(text)
        {
            return (layout.number, values);
        }
        self.learn(event as usize, text)
    }

    fn learn(&mut self, event: usize, text: &[u8]) -> (u32, [i64; 3]) {
        if self.last.len() <= event {
            self.last.resize(event + 1, Layout::default());
        }
        let layout = &mut self.last[event];
        layout.names.clear();
        self.joined.clear();
        let mut values = [NONE; 3];
        for (at, (name, value)) in Parameters::of(text).enumerate() {
            let mut whole = Vec::with_capacity(name.len() + 2);
            if at > 0 {
                self.joined.push(b',');
                whole.push(b' ');
            }
            self.joined.extend_from_slice(name);
            whole.extend_from_slice(name);
            whole.push(b'=');
            layout.names.push(whole);
            if let Some(place) = values.get_mut(at) {
                *place = value;
            }
        }
        layout.number = self.names.number(&self.joined, hash64(&self.joined) as u32);
        (layout.number, values)
    }

    /// Returns the names by their numbers.
    pub fn names(&self) -> &Names {
        &self.names
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

    /// Whatever came before, a text is taken apart as it would be alone.
    #[test]
    fn a_layout_that_is_known_changes_nothing() {
        let texts = [
            "file#=7 block#=100 blocks=1",
            "file#=7 block#=101 blocks=1",
            "file#=7 block#=-1 blocks=1",
            "file#=7 block#=18446744073709551615 blocks=1",
            "file#=7 block#=999999999999999999 blocks=1",
            "file#=7 block#=5",
            "file#=7 block#=5 blocks=1 obj=2 ",
            "file#=7 block#= blocks=1",
            "file#=7 blo",
            "a=b=3 c",
            "a=b=4",
            "a=b=4 c=5",
            "",
            "=1 =2",
            "=1 =2 =3 =4",
        ];
        let mut known = Layouts::default();
        for first in texts {
            for second in texts {
                known.take_apart(3, first.as_bytes());
                let (number, values) = known.take_apart(3, second.as_bytes());
                let (names, numbers): (Vec<String>, Vec<i64>) = taken_apart(second).into_iter().unzip();
                assert_eq!(known.names().name(number), names.join(",").as_bytes(), "{first} | {second}");
                let alone: Vec<i64> = numbers.into_iter().chain([NONE; 3]).take(3).collect();
                assert_eq!(values.to_vec(), alone, "{first} | {second}");
            }
        }
    }
}
