//! Values of keys in the forms of the protocol: the same key in text, in binary and in an array has equal values.

use serde::Deserialize;

/// Kind of the values of a key space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Integers of two, four or eight bytes.
    Integer,
    /// UUIDs.
    Uuid,
    /// Anything else, which is compared byte by byte.
    Other,
}

/// Value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Integer.
    Number(i64),
    /// UUID.
    Uuid([u8; 16]),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// Length of a text UUID without hyphens.
const UUID_DIGITS: usize = 32;

impl Value {
    /// Interprets bytes of the protocol; `None` if they are not a value of this kind.
    pub fn of(kind: Kind, bytes: &[u8], is_binary: bool) -> Option<Self> {
        match (kind, is_binary) {
            (Kind::Other, _) => Some(Self::Bytes(bytes.to_vec())),
            (Kind::Integer, false) => std::str::from_utf8(bytes).ok()?.trim().parse().ok().map(Self::Number),
            (Kind::Integer, true) => match bytes.len() {
                2 => Some(Self::Number(i16::from_be_bytes(bytes.try_into().ok()?).into())),
                4 => Some(Self::Number(i32::from_be_bytes(bytes.try_into().ok()?).into())),
                8 => Some(Self::Number(i64::from_be_bytes(bytes.try_into().ok()?))),
                _ => None,
            },
            (Kind::Uuid, false) => uuid(bytes).map(Self::Uuid),
            (Kind::Uuid, true) => bytes.try_into().ok().map(Self::Uuid),
        }
    }

    /// Returns the text form of the value.
    pub fn as_text(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Number(number) => number.to_string().into_bytes(),
            Self::Uuid(bytes) => {
                let mut out = Vec::with_capacity(UUID_DIGITS + 4);
                for (at, byte) in bytes.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        out.push(b'-');
                    }
                    out.extend_from_slice(format!("{byte:02x}").as_bytes());
                }
                out
            }
        }
    }

    /// Returns the binary form of the value, with the length of the value that it replaces; `None` if it does not fit.
    pub fn as_binary(&self, length: usize) -> Option<Vec<u8>> {
        match (self, length) {
            (Self::Bytes(bytes), _) => Some(bytes.clone()),
            (Self::Uuid(bytes), _) => Some(bytes.to_vec()),
            (Self::Number(number), 2) => Some(i16::try_from(*number).ok()?.to_be_bytes().to_vec()),
            (Self::Number(number), 4) => Some(i32::try_from(*number).ok()?.to_be_bytes().to_vec()),
            (Self::Number(number), 8) => Some(number.to_be_bytes().to_vec()),
            _ => None,
        }
    }
}

/// Parses a UUID as the server does: hexadecimal digits, hyphens and braces.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'-' | b'{' | b'}')).collect();
    let mut out = [0; 16];
    if digits.len() != UUID_DIGITS {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

/// Returns an array in text form with replaced elements and their number: `{17,18}`, `{"a","b"}`.
pub fn in_text_array(array: &[u8], mut instead: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> (Vec<u8>, u64) {
    let (mut out, mut count, mut at) = (Vec::with_capacity(array.len()), 0, 0);
    while let Some(first) = array.get(at) {
        if matches!(first, b'{' | b'}' | b',') || first.is_ascii_whitespace() {
            out.push(*first);
            at += 1;
            continue;
        }
        let (quote, inside, length) = element(&array[at..]);
        let new = if inside.contains(&b'\\') { None } else { instead(inside) };
        match new {
            Some(new) => {
                count += 1;
                out.extend_from_slice(&[quote, &new, quote].concat());
            }
            None => out.extend_from_slice(&array[at..at + length]),
        }
        at += length;
    }
    (out, count)
}

/// Returns the quote, the content and the length of the element with which `rest` begins.
fn element(rest: &[u8]) -> (&[u8], &[u8], usize) {
    if rest.first() != Some(&b'"') {
        let length = rest.iter().take_while(|byte| !matches!(byte, b',' | b'}')).count().max(1);
        return (b"", &rest[..length], length);
    }
    let mut at = 1;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    let end = at.min(rest.len());
    (b"\"", &rest[1..end], (end + 1).min(rest.len()))
}

/// Returns an array in binary form with replaced elements and their number; `None` if it is no array.
pub fn in_binary_array(array: &[u8], mut instead: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> Option<(Vec<u8>, u64)> {
    // Number of dimensions, a flag for NULLs, type of the elements; then length and lower bound of each dimension.
    let (dimensions, _) = array.split_first_chunk::<4>()?;
    let head = 12 + 8 * usize::try_from(i32::from_be_bytes(*dimensions)).ok()?;
    let (mut out, mut count, mut rest) = (array.get(..head)?.to_vec(), 0, &array[head..]);
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        rest = behind;
        let Ok(size) = usize::try_from(i32::from_be_bytes(*length)) else {
            out.extend_from_slice(length);
            continue;
        };
        let old = rest.get(..size)?;
        rest = &rest[size..];
        let new = instead(old);
        count += u64::from(new.is_some());
        let value = new.as_deref().unwrap_or(old);
        out.extend_from_slice(&(value.len() as i32).to_be_bytes());
        out.extend_from_slice(value);
    }
    Some((out, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_the_same_in_text_and_in_binary() {
        let text = b"6F9619FF-8B86-D011-B42D-00CF4FC964FF";
        let value = Value::of(Kind::Uuid, text, false).expect("a UUID");
        let bytes = value.as_binary(16).expect("its bytes");
        assert_eq!(Value::of(Kind::Uuid, &bytes, true), Some(value.clone()));
        assert_eq!(value.as_text(), text.to_ascii_lowercase());
        assert_eq!(Value::of(Kind::Uuid, b"6F96", false), None);
    }

    #[test]
    fn elements_of_an_array_are_replaced_one_by_one() {
        let instead = |old: &[u8]| (old == b"17").then(|| b"2300".to_vec());
        assert_eq!(in_text_array(b"{17,18, NULL,\"17\"}", instead), (b"{2300,18, NULL,\"2300\"}".to_vec(), 2));
        assert_eq!(in_text_array(b"{{17},{1}}", instead), (b"{{2300},{1}}".to_vec(), 1));
        assert_eq!(in_text_array(b"{\"1\\\"7", instead), (b"{\"1\\\"7".to_vec(), 0));
        let array = |values: [i32; 2]| {
            let numbers = [1, 0, 23, 2, 1, 4, values[0], 4, values[1]];
            numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<u8>>()
        };
        let binary = |old: &[u8]| (old == 17i32.to_be_bytes()).then(|| 2300i32.to_be_bytes().to_vec());
        assert_eq!(in_binary_array(&array([17, 18]), binary), Some((array([2300, 18]), 1)));
        assert_eq!(in_binary_array(b"17", binary), None);
    }
}
