//! Sizes as text: `512`, `4KiB..12MiB` or `64KiB,512KiB,1MiB`, as in the study redo-size.

use crate::database::ParameterError;
use crate::kernel::Stream;

const LARGEST: u64 = 256 << 20;

/// Sizes to draw from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Any whole number from the first to the second, equally likely.
    Range(u64, u64),
    /// One of these sizes, equally likely.
    List(Vec<u64>),
}

impl Sizes {
    /// Reads sizes from a text; `key` names the parameter in an error.
    ///
    /// # Errors
    /// The text names no size.
    pub fn parse(key: &'static str, text: &str) -> Result<Self, ParameterError> {
        let error = || ParameterError {
            key,
            found: format!("{text:?}"),
            allowed: "a size such as 512 or 4KiB, a range 4KiB..12MiB, or a list 64KiB,1MiB; each \
                      from 1 byte to 256 MiB"
                .into(),
        };
        if let Some((low, high)) = text.split_once("..") {
            let (low, high) = size(low).zip(size(high)).ok_or_else(error)?;
            return if low < high { Ok(Self::Range(low, high)) } else { Err(error()) };
        }
        let sizes = text.split(',').map(size).collect::<Option<Vec<u64>>>();
        sizes.map(Self::List).ok_or_else(error)
    }

    /// Returns a random size.
    pub fn draw(&self, dice: &mut Stream) -> u64 {
        match self {
            Self::Range(low, high) => low + dice.below(high - low + 1),
            Self::List(sizes) if sizes.len() == 1 => sizes[0],
            Self::List(sizes) => sizes[dice.below(sizes.len() as u64) as usize],
        }
    }
}

/// Returns the number of bytes that a text such as `4KiB`, `1.5MB` or `512` stands for.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1.0,
        "KB" => 1e3,
        "K" | "KIB" => 1_024.0,
        "MB" => 1e6,
        "M" | "MIB" => 1_048_576.0,
        _ => return None,
    };
    let digits = digits.trim_end();
    let plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number: f64 = digits.parse().ok().filter(|_| plain)?;
    let bytes = (number * unit).round();
    (bytes >= 1.0 && bytes <= LARGEST as f64).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_a_range_and_a_list() {
        let parse = |text| Sizes::parse("redo_bytes", text).ok();
        assert_eq!(parse("512"), Some(Sizes::List(vec![512])));
        assert_eq!(parse("4KiB..12MiB"), Some(Sizes::Range(4_096, 12 << 20)));
        assert_eq!(parse("64k, 1.5 MB"), Some(Sizes::List(vec![65_536, 1_500_000])));
        for wrong in ["", "x", "0", "-1", "1e3", "4KiB..", "2..1", "1GB", "300MiB", "1,,2"] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
