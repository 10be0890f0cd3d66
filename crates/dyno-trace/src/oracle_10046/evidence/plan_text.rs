//! Parser of the text of a STAT line: the operation, its partitions, its figures.
//!
//! `TABLE ACCESS FULL T (cr=4 pr=0 pw=0 str=1 time=26 us cost=2 size=3 card=1)`. 9i writes `r` and `w` for `pr` and
//! `pw`; 23.26 puts the unit after `dw`. A figure that is not a number counts as missing.

use dyno_evidence::NONE;

/// Names of the figures, in the order of [`PlanText::figures`].
pub const FIGURES: [&str; 10] = ["cr", "pr", "pw", "str", "time", "cost", "size", "card", "dr", "dw"];

/// Parsed text of a STAT line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanText<'a> {
    /// Operation with the object's name, without partitions and figures.
    pub operation: &'a [u8],
    /// Partitions: `1 28` of `PARTITION: 1 28`.
    pub partition: Option<&'a [u8]>,
    /// Figures in the order of [`FIGURES`]; [`NONE`] if missing.
    pub figures: [i64; FIGURES.len()],
}

/// Parses the text of a STAT line.
pub fn plan_text(text: &[u8]) -> PlanText<'_> {
    let mut figures = [NONE; FIGURES.len()];
    let bracket = memchr::memrchr(b'(', text).filter(|at| text[at + 1..].starts_with(b"cr="));
    let mut operation = text;
    if let Some(at) = bracket {
        operation = &text[..at];
        let inner = text[at + 1..].strip_suffix(b")").unwrap_or(&text[at + 1..]);
        inner.split(|byte| *byte == b' ').for_each(|word| figure(word, &mut figures));
    }
    let operation = operation.trim_ascii_end();
    let (operation, partition) = match memchr::memmem::rfind(operation, b" PARTITION: ") {
        Some(at) => (operation[..at].trim_ascii_end(), Some(operation[at + 12..].trim_ascii())),
        None => (operation, None),
    };
    PlanText { operation, partition, figures }
}

fn figure(word: &[u8], figures: &mut [i64; FIGURES.len()]) {
    let Some(equals) = memchr::memchr(b'=', word) else { return };
    let name = match &word[..equals] {
        b"r" => b"pr",
        b"w" => b"pw",
        name => name,
    };
    let Some(at) = FIGURES.iter().position(|known| known.as_bytes() == name) else { return };
    let digits = word[equals + 1..].strip_suffix(b"us").unwrap_or(&word[equals + 1..]);
    let mut value = 0i64;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return;
        }
        value = value.saturating_mul(10).saturating_add(i64::from(byte - b'0'));
    }
    if !digits.is_empty() {
        figures[at] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(text: &str) -> Vec<(&'static str, i64)> {
        let found = plan_text(text.as_bytes()).figures;
        FIGURES.into_iter().zip(found).filter(|(_, value)| *value != NONE).collect()
    }

    #[test]
    fn every_versions_figures_are_found() {
        let old = plan_text(b"TABLE ACCESS FULL T (cr=4 r=1 w=2 time=26 us)");
        assert_eq!((old.operation, old.partition), (&b"TABLE ACCESS FULL T"[..], None));
        assert_eq!(
            figures("TABLE ACCESS FULL T (cr=4 r=1 w=2 time=26 us)"),
            [("cr", 4), ("pr", 1), ("pw", 2), ("time", 26)]
        );
        assert_eq!(
            figures("SORT (cr=6 pr=0 pw=0 str=1 time=248us cost=10 size=411 card=3)"),
            [("cr", 6), ("pr", 0), ("pw", 0), ("str", 1), ("time", 248), ("cost", 10), ("size", 411), ("card", 3)]
        );
        assert_eq!(
            figures("X (cr=1 pr=0 pw=0 str=1 time=120 dr=5 dw=6 us cost=2)"),
            [("cr", 1), ("pr", 0), ("pw", 0), ("str", 1), ("time", 120), ("cost", 2), ("dr", 5), ("dw", 6)]
        );
    }

    #[test]
    fn partitions_stand_before_the_bracket() {
        let text = plan_text(b"PARTITION RANGE ALL PARTITION: 1 28 (cr=1 pr=0 pw=0 time=1 us)");
        assert_eq!(text.operation, b"PARTITION RANGE ALL");
        assert_eq!(text.partition, Some(&b"1 28"[..]));
    }

    #[test]
    fn a_text_without_figures_is_an_operation() {
        let text = plan_text(b"INDEX RANGE SCAN I (object id 7)");
        assert_eq!(text.operation, b"INDEX RANGE SCAN I (object id 7)");
        assert_eq!(figures("cut (cr="), []);
        assert_eq!(figures("cut (cr=9999999999999999999999 x"), [("cr", i64::MAX)]);
    }
}
