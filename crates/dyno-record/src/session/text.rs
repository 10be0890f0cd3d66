//! What the text of a statement says of it.

use dyno_evidence::normal::normal;

use crate::store::Store;

/// The statement of a text without its literals: they would be values of users, and a statement each.
pub(super) fn statement_of(text: &[u8], store: &mut Store) -> u32 {
    store.statement_of_text(normal(text).as_bytes())
}

/// What a statement does with plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// It has one.
    Planned,
    /// It has none; those within are of other statements.
    Utility,
    /// The same, and the client is waited for within.
    Copy,
}

impl Sort {
    /// Of a text; where it is not known: that of most.
    pub(super) fn of(text: &[u8]) -> Self {
        const WORDS: [&[u8]; 11] = [
            b"alter", b"analyze", b"call", b"cluster", b"create", b"declare", b"do", b"execute", b"explain",
            b"refresh", b"vacuum",
        ];
        let text = text.trim_ascii_start();
        let end = text.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(text.len());
        let is = |word: &[u8]| word.eq_ignore_ascii_case(&text[..end]);
        if is(b"copy") {
            Self::Copy
        } else if WORDS.into_iter().any(is) {
            Self::Utility
        } else {
            Self::Planned
        }
    }
}
