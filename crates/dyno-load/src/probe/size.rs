//! Redo size of a commit: one size, several, a range, or an exponential distribution.
//!
//! ```
//! use dyno_load::probe::Sizes;
//! use dyno_script::Rng;
//! let sizes: Sizes = "512,4KiB,64KiB".parse()?;
//! assert!([512, 4096, 65536].contains(&sizes.draw(&mut Rng::new(7))));
//! assert_eq!(sizes.largest(), 65536);
//! # Ok::<(), dyno_load::probe::ProbeError>(())
//! ```

use std::str::FromStr;

use dyno_script::Rng;

use super::ProbeError;

/// Largest redo size of a commit \[bytes\].
const LARGEST: u64 = 256 << 20;

/// An exponential distribution is cut off at this multiple of its mean (one draw in three million).
const CUT: u64 = 15;

/// Distribution of the redo sizes of commits \[bytes\].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sizes {
    /// Each of these sizes with equal probability.
    Levels(Vec<u64>),
    /// Uniform distribution between two sizes, both included.
    Range(u64, u64),
    /// Exponential distribution with this mean, at least 1 byte and at most 15 times the mean.
    Exponential(u64),
}

impl Sizes {
    /// Draws the next size \[bytes\].
    pub fn draw(&self, dice: &mut Rng) -> u64 {
        match self {
            Self::Levels(levels) => levels[dice.up_to(levels.len() as u64 - 1) as usize],
            Self::Range(low, high) => low + dice.up_to(high - low),
            Self::Exponential(mean) => {
                let drawn = -(1.0 - dice.unit()).ln() * *mean as f64;
                (drawn.round() as u64).clamp(1, mean * CUT)
            }
        }
    }

    /// Returns the largest size that can be drawn \[bytes\].
    pub fn largest(&self) -> u64 {
        match self {
            Self::Levels(levels) => levels.iter().copied().max().unwrap_or(1),
            Self::Range(_, high) => *high,
            Self::Exponential(mean) => mean * CUT,
        }
    }
}

impl FromStr for Sizes {
    type Err = ProbeError;

    fn from_str(text: &str) -> Result<Self, ProbeError> {
        if let Some(mean) = text.trim().strip_prefix("exp(").and_then(|t| t.strip_suffix(')')) {
            return Ok(Self::Exponential(bytes(mean)?));
        }
        if let Some((low, high)) = text.split_once("..") {
            let (low, high) = (bytes(low)?, bytes(high)?);
            if low >= high {
                return Err(refuse(format!("{text:?} is an empty range")));
            }
            return Ok(Self::Range(low, high));
        }
        text.split(',').map(bytes).collect::<Result<Vec<_>, _>>().map(Self::Levels)
    }
}

/// Parses a size such as `64KiB`, `1MiB`, `1.5MB` or `4096`; returns it in bytes.
pub(super) fn bytes(text: &str) -> Result<u64, ProbeError> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1_048_576.0,
        "kb" => 1000.0,
        "mb" => 1_000_000.0,
        _ => return Err(refuse(format!("{text:?} is not a size"))),
    };
    let size = number.parse::<f64>().ok().map(|n| (n * factor).round());
    match size {
        Some(size) if (1.0..=LARGEST as f64).contains(&size) => Ok(size as u64),
        Some(_) => Err(refuse(format!("{text:?} lies outside 1 byte to 256 MiB"))),
        None => Err(refuse(format!("{text:?} is not a size"))),
    }
}

/// Formats bytes in the most readable unit: `16 MiB`, `1.02 TiB`.
pub(super) fn said(bytes: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let Some((unit, name)) = units.into_iter().find(|(unit, _)| bytes >= *unit) else {
        return format!("{bytes} bytes");
    };
    let number = bytes as f64 / unit as f64;
    let places = match number {
        _ if number.fract() == 0.0 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{number:.places$} {name}")
}

fn refuse(message: String) -> ProbeError {
    ProbeError::spec(
        "size",
        message,
        "write 512 or 4KiB, a list such as 512,4KiB,64KiB, a range such as 4KiB..1MiB, or a mean \
         such as exp(8KiB)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_in_the_unit_that_a_reader_would_choose() {
        for (bytes, words) in [
            (17, "17 bytes"),
            (4096, "4 KiB"),
            (80 << 20, "80 MiB"),
            (1_048_592 << 20, "1.00 TiB"),
            (25_500 << 20, "24.9 GiB"),
        ] {
            assert_eq!(said(bytes), words);
        }
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        let read = |text: &str| text.parse::<Sizes>().unwrap();
        assert_eq!(read("512"), Sizes::Levels(vec![512]));
        assert_eq!(read(" 512, 4KiB,64kib"), Sizes::Levels(vec![512, 4096, 65536]));
        assert_eq!(read("1KB..1.5MB"), Sizes::Range(1000, 1_500_000));
        assert_eq!(read("exp(8KiB)"), Sizes::Exponential(8192));
    }

    #[test]
    fn what_is_no_size_is_refused_with_what_is_one() {
        for text in ["", "x", "4 parsecs", "0", "1..1", "9..2", "300MiB", "exp()", "1,,2", "-5"] {
            let error = text.parse::<Sizes>().unwrap_err().to_string();
            assert!(error.contains("next: write 512"), "{text}: {error}");
        }
    }

    #[test]
    fn draws_follow_the_law() {
        let mut dice = Rng::new(11);
        let mut mean = |text: &str| {
            let sizes: Sizes = text.parse().unwrap();
            let drawn: Vec<u64> = (0..40_000).map(|_| sizes.draw(&mut dice)).collect();
            assert!(drawn.iter().all(|d| (1..=sizes.largest()).contains(d)));
            drawn.iter().sum::<u64>() as f64 / drawn.len() as f64
        };
        // Standard errors of the means: 0, 816/200, 1000/200.
        assert!((mean("100") - 100.0).abs() < 1e-9);
        assert!((mean("1000,2000,3000") - 2000.0).abs() < 4.0 * 816.5 / 200.0);
        assert!((mean("exp(1000)") - 1000.0).abs() < 4.0 * 1000.0 / 200.0);
        assert!((mean("1..2001") - 1001.0).abs() < 4.0 * 577.6 / 200.0);
    }
}
