//! Statement of a message, and result of an answer.

use crate::framing::text;
use dyno_evidence::normal::normal_of;

use crate::shared::Shared;

/// Statement of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement {
    pub(crate) number: u32,
    pub(crate) kind: &'static str,
    /// True if the statement returns rows that may contain generated keys.
    pub(crate) returns: bool,
}

pub(crate) const NO_STATEMENT: Statement = Statement { number: u32::MAX, kind: "exec", returns: false };

/// Returns the statement in a text, without its literals, and the kind of the statement.
pub(crate) fn statement_of(sql: &[u8], shared: &mut Shared) -> Statement {
    if sql.is_empty() {
        return NO_STATEMENT;
    }
    let text = normal_of(sql, shared.dialect);
    let bytes = text.as_bytes();
    let first = bytes.split(|byte| matches!(byte, b' ' | b';')).next().unwrap_or_default();
    let is = |words: [&[u8]; 2]| words.iter().any(|word| first.eq_ignore_ascii_case(word));
    let kind = if is([&b"commit"[..], b"end"]) {
        "commit"
    } else if is([&b"rollback"[..], b"abort"]) {
        "rollback"
    } else {
        "exec"
    };
    Statement { number: shared.store.statement_of_text(bytes), kind, returns: names_returning(bytes) }
}

fn names_returning(text: &[u8]) -> bool {
    memchr::memchr2_iter(b'g', b'G', text).any(|end| end >= 8 && text[end - 8..=end].eq_ignore_ascii_case(b"returning"))
}

/// Returns the row count of a command tag: `INSERT 0 5`, `SELECT 3`, `COPY 7`.
pub(crate) fn rows_of(tag: &[u8]) -> Option<u64> {
    let last = tag.rsplit(|byte| *byte == b' ').next()?;
    std::str::from_utf8(last).ok()?.parse().ok()
}

/// Returns the SQLSTATE of an error, XX000 if there is none; nothing else of the error is examined.
pub(crate) fn state_of(mut fields: &[u8]) -> [u8; 5] {
    while let Some((kind, rest)) = fields.split_first() {
        let (value, behind) = text(rest);
        if *kind == b'C' && value.len() == 5 {
            return [value[0], value[1], value[2], value[3], value[4]];
        }
        fields = behind;
    }
    *b"XX000"
}

/// SQLSTATE of a failure whose SQLSTATE a capture does not have.
pub(crate) const NO_STATE: [u8; 5] = *b"?????";

/// Returns true if a failure is the same as in the capture, or if the capture does not have its SQLSTATE.
pub(crate) fn is_same_failure(then: &[u8], now: &[u8]) -> bool {
    then == now || then == NO_STATE
}

#[cfg(test)]
mod tests {
    use super::names_returning;

    #[test]
    fn returning_is_found_wherever_it_is() {
        for text in [&b"insert into t values (?) returning id"[..], b"RETURNING", b"gg Returning *"] {
            assert!(names_returning(text));
        }
        for text in [&b"insert into t values (?)"[..], b"returnin g", b"eturning", b""] {
            assert!(!names_returning(text));
        }
    }
}
