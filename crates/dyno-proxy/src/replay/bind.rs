//! Values in the messages of the protocol: the values of a Bind, and the values of a row.

use crate::framing::text;

/// Returns true if the value at this index is binary; no formats mean text, and a single format applies to all values.
pub fn format_of(formats: &[bool], place: usize) -> bool {
    match formats {
        [] => false,
        [all] => *all,
        _ => formats.get(place).copied().unwrap_or(false),
    }
}

/// Returns the formats that a Bind requests for results.
pub fn result_formats(body: &[u8]) -> Vec<bool> {
    Bind::of(body).map(|bind| formats(bind.behind)).unwrap_or_default()
}

fn formats(bytes: &[u8]) -> Vec<bool> {
    let Some((count, rest)) = bytes.split_first_chunk::<2>() else { return Vec::new() };
    rest.chunks_exact(2).take(u16::from_be_bytes(*count).into()).map(|code| code[1] == 1).collect()
}

/// Parts of a Bind message.
pub struct Bind<'a> {
    /// Bytes up to the number of values, including that number.
    pub head: &'a [u8],
    /// Formats of the parameters: true for binary. If empty, all are text; a single one applies to all.
    pub formats: Vec<bool>,
    /// Values; `None` for NULL.
    pub values: Vec<Option<&'a [u8]>>,
    /// Formats of the results.
    pub behind: &'a [u8],
}

impl<'a> Bind<'a> {
    /// Parses a body; `None` if it is incomplete.
    pub fn of(body: &'a [u8]) -> Option<Self> {
        let (_, rest) = text(body);
        let (_, rest) = text(rest);
        let count = usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?]));
        let values = rest.get(2 + 2 * count..)?;
        let head = &body[..body.len() - values.len() + 2];
        let (values, behind) = fields(values)?;
        Some(Self { head, formats: formats(rest), values, behind })
    }
}

/// Values of a row or of a Bind, and the bytes after them.
pub type Fields<'a> = (Vec<Option<&'a [u8]>>, &'a [u8]);

/// Parses a count and as many values with their lengths; `None` if they are incomplete.
pub fn fields(bytes: &[u8]) -> Option<Fields<'_>> {
    let (count, mut rest) = bytes.split_first_chunk::<2>()?;
    let mut found = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        rest = behind;
        let Ok(size) = usize::try_from(i32::from_be_bytes(*length)) else {
            found.push(None);
            continue;
        };
        found.push(Some(rest.get(..size)?));
        rest = &rest[size..];
    }
    Some((found, rest))
}
