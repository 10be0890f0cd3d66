//! MariaDB's own errors by number: the name of the condition, and the pattern of the message.
//!
//! `known_errors.tsv` has one row per error; `*` in a pattern stands for a value that the server inserts. A message
//! that does not match the pattern for its number was not written by the server: a SIGNAL statement has used that
//! number. If a number is not in the table, the origin of its message is unknown.

use std::collections::HashMap;
use std::sync::OnceLock;

const TABLE: &str = include_str!("known_errors.tsv");

/// One error that MariaDB itself raises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownError {
    /// MariaDB's error number.
    pub number: u16,
    /// SQLSTATE that the error has by default.
    pub state: &'static str,
    /// Name of the condition, such as `ER_DUP_ENTRY`.
    pub condition: &'static str,
    /// Pattern of the message.
    shape: &'static str,
}

/// Returns all errors of the table.
pub fn known_errors() -> impl Iterator<Item = KnownError> {
    TABLE.lines().skip(1).filter_map(|line| {
        let mut columns = line.split('\t');
        let (number, state) = (columns.next()?.parse().ok()?, columns.next()?);
        Some(KnownError { number, state, condition: columns.next()?, shape: columns.next()? })
    })
}

/// Returns the error with this number, or `None` if it is not in the table.
pub fn known_error(number: u16) -> Option<KnownError> {
    static INDEX: OnceLock<HashMap<u16, KnownError>> = OnceLock::new();
    INDEX.get_or_init(|| known_errors().map(|error| (error.number, error)).collect()).get(&number).copied()
}

impl KnownError {
    /// Returns the message with each inserted value replaced by `…`, or `None` if the message does not match the
    /// pattern.
    ///
    /// Values for which `may_show` returns true are kept.
    pub fn without_values(&self, message: &str, may_show: impl Fn(&str) -> bool) -> Option<String> {
        let mut fixed = self.shape.split('*');
        let first = fixed.next().unwrap_or_default();
        let (mut out, mut rest) = (first.to_owned(), message.strip_prefix(first)?);
        let pieces: Vec<&str> = fixed.collect();
        for (at, &piece) in pieces.iter().enumerate() {
            // The last piece must end the message: the value before it may contain the same words.
            let end = if at + 1 == pieces.len() {
                rest.len()
                    .checked_sub(piece.len())
                    .filter(|&end| rest.is_char_boundary(end) && &rest[end..] == piece)?
            } else {
                rest.find(piece)?
            };
            let filled = &rest[..end];
            out.push_str(if may_show(filled) { filled } else { "…" });
            out.push_str(piece);
            rest = &rest[end + piece.len()..];
        }
        rest.is_empty().then_some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns error numbers and message patterns of an installed server; its message file has four tables of lengths,
    /// then the texts.
    fn installed() -> Option<Vec<(u16, String)>> {
        let bytes = std::fs::read("/usr/share/mysql/english/errmsg.sys").ok()?;
        let number = |at: usize| Some(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        let counts: Vec<u16> = (0..4).map_while(|at| number(32 + 2 * at)).collect();
        let total: usize = counts.iter().map(|count| usize::from(*count)).sum();
        let numbers =
            (1_u16..).zip(&counts).flat_map(|(section, &count)| (0..count).map(move |own| 1_000 * section + own));
        let (mut at, mut found) = (40 + 2 * total, Vec::new());
        for (place, own) in numbers.enumerate() {
            let length = usize::from(number(40 + 2 * place)?);
            found.push((own, String::from_utf8_lossy(bytes.get(at..at + length - 1)?).into_owned()));
            at += length;
        }
        Some(found)
    }

    /// Returns a pattern as a message, with `hunter` in place of each `%...`, as the server would format it.
    fn filled(form: &str) -> String {
        let (mut out, mut rest) = (String::new(), form);
        while let Some((before, behind)) = rest.split_once('%') {
            let length = behind.find(|c: char| c.is_ascii_alphabetic() && c != 'l').map_or(behind.len(), |at| at + 1);
            // A name in backquotes is written `%`s`, a number with its text %M.
            let length = if behind[..length].ends_with('`') { length + 1 } else { length };
            out += before;
            out += "hunter";
            rest = &behind[length..];
        }
        out + rest
    }

    #[test]
    fn the_forms_are_those_of_an_installed_server() {
        let Some(forms) = installed() else { return };
        let mut compared = 0;
        for (number, form) in forms {
            let Some(error) = known_error(number).filter(|_| number != 1064) else { continue };
            let message = filled(&form);
            let shown = error.without_values(&message, |_| false);
            assert!(
                shown.as_deref().is_some_and(|text| !text.contains("hunter")),
                "{number}: {form} {message} {shown:?}"
            );
            compared += 1;
        }
        assert!(compared > 80, "{compared}");
    }

    fn shown(number: u16, message: &str, known: &str) -> Option<String> {
        known_error(number).expect("is known").without_values(message, |text| known.contains(text))
    }

    #[test]
    fn what_the_server_filled_in_is_left_out_unless_the_script_has_it() {
        let message = "Duplicate entry 'hunter' for key 'PRIMARY'";
        assert_eq!(shown(1062, message, "select 1").as_deref(), Some("Duplicate entry '…' for key …"));
        let message = "Table 'shop.seats' doesn't exist";
        assert_eq!(shown(1146, message, "from shop.seats").as_deref(), Some(message));
        assert_eq!(shown(1213, known_error(1213).expect("is known").shape, "").expect("fits").len(), 66);
    }

    #[test]
    fn a_message_of_another_form_is_not_the_servers() {
        for message in [
            "client hunter is broke",
            "Duplicate entry 'hunter' for nobody",
            "Duplicate entry",
            "",
            "Table 'é' doesn't exisé",
        ] {
            assert_eq!(shown(1062, message, "hunter"), None, "{message}");
            assert_eq!(shown(1146, message, "hunter"), None, "{message}");
        }
    }

    #[test]
    fn a_value_with_the_words_around_it_does_not_survive() {
        let message = "Duplicate entry 'a' for key 'hunter' for key 'PRIMARY'";
        assert_eq!(shown(1062, message, "").as_deref(), Some("Duplicate entry '…' for key …"));
    }

    #[test]
    fn the_table_is_in_order_and_of_one_form() {
        let all: Vec<KnownError> = known_errors().collect();
        assert_eq!(all.len(), TABLE.lines().count() - 1);
        assert!(all.windows(2).all(|pair| pair[0].number < pair[1].number));
        for error in all {
            assert_eq!(error.state.len(), 5, "{error:?}");
            assert!(error.condition.starts_with("ER_") || error.condition.starts_with("WARN_"), "{error:?}");
        }
    }
}
