//! Parameters of a wait, parsed on demand.

use super::events::Names;
use super::lexer::{bits, short};
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
/// The waits of one event nearly always have the same names; the names are compared with those of the event's last
/// wait, and only the numbers are parsed.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    names: Names,
    /// Layout of each event's last wait, by the event's number.
    last: Vec<Layout>,
    joined: Vec<u8>,
}

/// Names of one wait's parameters.
#[derive(Clone, Debug, Default)]
struct Layout {
    number: u32,
    names: Vec<Name>,
}

/// Name with its `=` and, except for the first name, the blank before it; compared sixteen bytes at a time.
#[derive(Clone, Debug)]
struct Name {
    len: usize,
    /// The first sixteen bytes of the name, and a mask of the bytes that count.
    first: (u128, u128),
    /// The following parts of a longer name.
    more: Vec<(u128, u128)>,
}

impl Name {
    fn of(text: &[u8]) -> Self {
        let part = |bytes: &[u8]| {
            let mut whole = [0; 16];
            whole[..bytes.len()].copy_from_slice(bytes);
            (u128::from_le_bytes(whole), u128::MAX >> (8 * (16 - bytes.len())))
        };
        let mut parts = text.chunks(16).map(part);
        Self { len: text.len(), first: parts.next().unwrap_or_default(), more: parts.collect() }
    }

    /// Returns true if this name is at `at`; may return false for a match if too few bytes follow the name.
    #[inline]
    fn stands(&self, bytes: &[u8], at: usize) -> bool {
        let is_part = |from: usize, (part, mask): (u128, u128)| {
            let found = bytes.get(from..from + 16).and_then(|found| found.try_into().ok());
            found.is_some_and(|found| u128::from_le_bytes(found) & mask == part)
        };
        is_part(at, self.first)
            && (self.more.is_empty()
                || self.more.iter().zip(1..).all(|(&part, number)| is_part(at + 16 * number, part)))
    }
}

impl Layout {
    /// Returns the first values if the first `len` bytes consist of these names and plain numbers. If few bytes follow,
    /// it may return `None` even then.
    #[inline]
    fn values(&self, bytes: &[u8], len: usize) -> Option<[i64; 3]> {
        let mut values = [NONE; 3];
        let mut end = 0;
        for (at, name) in self.names.iter().enumerate() {
            if !name.stands(bytes, end) {
                return None;
            }
            let start = end + name.len;
            let (value, after) = short(bytes, start)?;
            if after - start > 18 || after > len {
                return None;
            }
            if let Some(place) = values.get_mut(at) {
                *place = value as i64;
            }
            end = after;
        }
        (end == len && !self.names.is_empty()).then_some(values)
    }
}

impl Layouts {
    /// Returns the id of the parameters' names (joined by commas), and the first three values of a wait.
    ///
    /// The parameters are the first `len` bytes. The bytes after them are only needed for speed: names are compared
    /// sixteen bytes at a time.
    #[inline]
    pub fn take_apart(&mut self, event: u32, bytes: &[u8], len: usize) -> (u32, [i64; 3]) {
        if let Some(layout) = self.last.get(event as usize)
            && let Some(values) = layout.values(bytes, len)
        {
            return (layout.number, values);
        }
        self.learn(event as usize, bytes.get(..len).unwrap_or_default())
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
            layout.names.push(Name::of(&whole));
            if let Some(place) = values.get_mut(at) {
                *place = value;
            }
        }
        layout.number = self.names.number(&self.joined, hash64(&self.joined) as u32);
        (layout.number, values)
    }

    /// Returns the lists of parameter names, by their ids.
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

    /// The result of parsing a text does not depend on the texts parsed before it.
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
            "a name of more than sixteen bytes=1 and another one that is longer=22",
            "",
            "=1 =2",
            "=1 =2 =3 =4",
        ];
        for following in ["", "12", " 3 obj#=5 tim=123456789012345678", "\nWAIT #1: nam='a' ela= 12345"] {
            let mut known = Layouts::default();
            let mut take = |text: &str| known_taken(&mut known, text, following);
            for first in texts {
                for second in texts {
                    take(first);
                    let (names, values) = take(second);
                    let (expected, numbers): (Vec<String>, Vec<i64>) = taken_apart(second).into_iter().unzip();
                    assert_eq!(names, expected.join(","), "{first} | {second} | {following}");
                    let alone: Vec<i64> = numbers.into_iter().chain([NONE; 3]).take(3).collect();
                    assert_eq!(values.to_vec(), alone, "{first} | {second} | {following}");
                }
            }
        }
    }

    fn known_taken(known: &mut Layouts, text: &str, following: &str) -> (String, [i64; 3]) {
        let (number, values) = known.take_apart(3, format!("{text}{following}").as_bytes(), text.len());
        (String::from_utf8_lossy(known.names().name(number)).into_owned(), values)
    }
}
