//! Effects of a text on its session: command tags, transactions, prepared statements, rows of a COPY.
//!
//! A log does not have the server's command tags. They are derived from the first words of each statement.

use std::borrow::Cow;

use dyno_evidence::normal::{Dialect, Piece, pieces, pieces_of};
use memchr::memchr;

/// Effect on a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No relevant effect.
    None,
    /// A transaction begins.
    Begin,
    /// The transaction ends, and another one may begin immediately.
    End {
        /// True for COMMIT.
        commits: bool,
        /// True for AND CHAIN.
        chains: bool,
    },
    /// A failed transaction continues from a savepoint.
    ToSavepoint,
    /// Rows of a COPY are read from the client.
    CopyIn,
    /// A statement is prepared under this name.
    Prepare(Vec<u8>),
    /// The statement prepared under this name is executed.
    Execute(Vec<u8>),
    /// The statement prepared under this name is forgotten; all if the name is empty.
    Deallocate(Vec<u8>),
}

/// One statement of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Command tag, without the number of rows.
    pub tag: Cow<'static, str>,
    /// Effect on the session.
    pub effect: Effect,
}

/// Number of words that are examined.
const WORDS: usize = 12;

/// Returns the statements of a text; none for an empty one.
pub fn commands(sql: &[u8], dialect: Dialect) -> Vec<Command> {
    let trimmed = sql.trim_ascii_end();
    let trimmed = trimmed.strip_suffix(b";").unwrap_or(trimmed);
    if memchr(b';', trimmed).is_none() {
        return command(trimmed, dialect).into_iter().collect();
    }
    statements(sql, dialect).into_iter().filter_map(|sql| command(sql, dialect)).collect()
}

/// Splits a text at its semicolons, except in literals, parentheses and function bodies.
fn statements(sql: &[u8], dialect: Dialect) -> Vec<&[u8]> {
    let (mut found, mut from, mut depth, mut atomic) = (Vec::new(), 0, 0_usize, 0_usize);
    let mut before: Vec<u8> = Vec::new();
    for piece in pieces_of(sql, dialect) {
        let Piece::Other(range) = piece else { continue };
        let word = sql[range.clone()].to_ascii_lowercase();
        match word.as_slice() {
            b"(" => depth += 1,
            b")" => depth = depth.saturating_sub(1),
            b"atomic" if before == b"begin" => atomic += 1,
            b"case" if atomic > 0 => atomic += 1,
            b"end" if atomic > 0 => atomic -= 1,
            b";" if depth == 0 && atomic == 0 => {
                found.push(&sql[from..range.start]);
                from = range.end;
            }
            _ => {}
        }
        before = word;
    }
    found.push(&sql[from..]);
    found
}

/// Returns the first words of a statement in lower case; a name in double quotes is one word.
fn words(sql: &[u8], dialect: Dialect) -> Vec<Vec<u8>> {
    let words = pieces_of(sql, dialect).filter_map(|piece| match piece {
        Piece::Other(range) => {
            let word = &sql[range];
            Some(match word.strip_prefix(b"\"") {
                Some(rest) => rest.strip_suffix(b"\"").unwrap_or(rest).to_vec(),
                None => word.to_ascii_lowercase(),
            })
        }
        _ => None,
    });
    words.take(WORDS).collect()
}

/// Texts that begin and end most transactions.
const CONTROL: [(&[u8], &str, Effect); 4] = [
    (b"begin", "BEGIN", Effect::Begin),
    (b"commit", "COMMIT", Effect::End { commits: true, chains: false }),
    (b"end", "COMMIT", Effect::End { commits: true, chains: false }),
    (b"rollback", "ROLLBACK", Effect::End { commits: false, chains: false }),
];

/// Returns the tag of the most frequent statements: those whose first word is SELECT, INSERT, UPDATE or DELETE.
fn common(sql: &[u8]) -> Option<&'static str> {
    let first = sql.trim_ascii_start();
    let first = first.split_at_checked(6).filter(|(_, rest)| rest.first().is_some_and(u8::is_ascii_whitespace))?.0;
    [(&b"select"[..], "SELECT"), (b"insert", "INSERT"), (b"update", "UPDATE"), (b"delete", "DELETE")]
        .into_iter()
        .find_map(|(word, tag)| first.eq_ignore_ascii_case(word).then_some(tag))
}

fn command(sql: &[u8], dialect: Dialect) -> Option<Command> {
    if let Some(tag) = common(sql) {
        return Some(Command { tag: Cow::Borrowed(tag), effect: Effect::None });
    }
    if let Some((_, tag, effect)) = CONTROL.iter().find(|(text, ..)| sql.trim_ascii().eq_ignore_ascii_case(text)) {
        return Some(Command { tag: Cow::Borrowed(tag), effect: effect.clone() });
    }
    let words = words(sql, dialect);
    let word = |at: usize| words.get(at).map_or(&b""[..], Vec::as_slice);
    let has = |sought: &[u8]| words.iter().any(|word| word == sought);
    let name = |at: usize| words.get(at).cloned().unwrap_or_default();
    let plain = |tag: &'static str| (Cow::Borrowed(tag), Effect::None);
    let (tag, effect) = match (word(0), word(1)) {
        (b"", _) => return None,
        (b"select" | b"values" | b"table" | b"(", _) => plain("SELECT"),
        (b"with", _) => plain(verb_of_with(sql)),
        (b"begin", _) => (Cow::Borrowed("BEGIN"), Effect::Begin),
        (b"start", b"transaction") => (Cow::Borrowed("START TRANSACTION"), Effect::Begin),
        (b"prepare", b"transaction") => {
            (Cow::Borrowed("PREPARE TRANSACTION"), Effect::End { commits: true, chains: false })
        }
        (b"commit" | b"rollback", b"prepared") => {
            plain(if word(0) == b"commit" { "COMMIT PREPARED" } else { "ROLLBACK PREPARED" })
        }
        (b"commit" | b"end", _) => (Cow::Borrowed("COMMIT"), Effect::End { commits: true, chains: chains(&words) }),
        (b"rollback", _) if has(b"to") => (Cow::Borrowed("ROLLBACK"), Effect::ToSavepoint),
        (b"rollback" | b"abort", _) => {
            (Cow::Borrowed("ROLLBACK"), Effect::End { commits: false, chains: chains(&words) })
        }
        (b"set", b"constraints") => plain("SET CONSTRAINTS"),
        (b"declare", _) => plain("DECLARE CURSOR"),
        (b"close", _) => plain("CLOSE CURSOR"),
        (b"prepare", _) => (Cow::Borrowed("PREPARE"), Effect::Prepare(name(1))),
        (b"execute", _) => (Cow::Borrowed("SELECT"), Effect::Execute(name(1))),
        (b"deallocate", _) => deallocated(if word(1) == b"prepare" { word(2) } else { word(1) }),
        (b"discard", b"all") => (Cow::Borrowed("DISCARD ALL"), Effect::Deallocate(Vec::new())),
        (b"copy", _) if reads_rows(sql) => (Cow::Borrowed("COPY"), Effect::CopyIn),
        _ => return Some(other(&words)),
    };
    Some(Command { tag, effect })
}

fn other(words: &[Vec<u8>]) -> Command {
    let first = words.first().map(|word| String::from_utf8_lossy(word).to_ascii_uppercase()).unwrap_or_default();
    Command { tag: Cow::Owned(first.chars().take(32).collect()), effect: Effect::None }
}

fn chains(words: &[Vec<u8>]) -> bool {
    words.windows(2).any(|pair| pair[0] == b"and" && pair[1] == b"chain")
}

fn deallocated(name: &[u8]) -> (Cow<'static, str>, Effect) {
    if name == b"all" {
        (Cow::Borrowed("DEALLOCATE ALL"), Effect::Deallocate(Vec::new()))
    } else {
        (Cow::Borrowed("DEALLOCATE"), Effect::Deallocate(name.to_vec()))
    }
}

/// Returns the tag of the main statement after WITH.
fn verb_of_with(sql: &[u8]) -> &'static str {
    let mut depth = 0_usize;
    for piece in pieces(sql) {
        let Piece::Other(range) = piece else { continue };
        match sql[range].to_ascii_lowercase().as_slice() {
            b"(" => depth += 1,
            b")" => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            b"insert" => return "INSERT",
            b"update" => return "UPDATE",
            b"delete" => return "DELETE",
            b"merge" => return "MERGE",
            b"select" | b"values" | b"table" => return "SELECT",
            _ => {}
        }
    }
    "SELECT"
}

/// Returns true for COPY ... FROM STDIN.
fn reads_rows(sql: &[u8]) -> bool {
    let mut is_from = false;
    for piece in pieces(sql) {
        let Piece::Other(range) = piece else { continue };
        let word = sql[range].to_ascii_lowercase();
        if is_from && word == b"stdin" {
            return true;
        }
        is_from = word == b"from";
    }
    false
}

/// Returns true if a text has parameters (`$1`).
pub fn has_parameters(sql: &[u8]) -> bool {
    memchr(b'$', sql).is_some()
        && pieces(sql).any(|piece| {
            matches!(piece, Piece::Other(range) if sql[range.start] == b'$'
                && sql.get(range.start + 1).is_some_and(u8::is_ascii_digit))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(sql: &str) -> Vec<Cow<'static, str>> {
        commands(sql.as_bytes(), Dialect::Postgres).into_iter().map(|command| command.tag).collect()
    }

    fn effect(sql: &str) -> Effect {
        commands(sql.as_bytes(), Dialect::Postgres).into_iter().next().expect("a statement").effect
    }

    #[test]
    fn tags_are_those_of_the_server() {
        for (sql, expected) in [
            ("select 1", "SELECT"),
            ("  /* x */ SELECT 1;", "SELECT"),
            ("(select 1) union select 2", "SELECT"),
            ("with a as (delete from t returning 1) select * from a", "SELECT"),
            ("with a as (select 1) insert into t select * from a", "INSERT"),
            ("update t set a = ';'", "UPDATE"),
            ("End", "COMMIT"),
            ("abort", "ROLLBACK"),
            ("vacuum t", "VACUUM"),
            ("declare c cursor for select 1", "DECLARE CURSOR"),
            ("deallocate all", "DEALLOCATE ALL"),
        ] {
            assert_eq!(tags(sql), [expected], "{sql}");
        }
        assert!(tags("").is_empty() && tags(" ; -- nothing").is_empty());
    }

    #[test]
    fn a_text_has_several_statements_but_not_in_bodies_and_literals() {
        assert_eq!(tags("begin; select ';'; commit"), ["BEGIN", "SELECT", "COMMIT"]);
        assert_eq!(tags("create rule r as on insert to t do (select 1; select 2); select 3"), ["CREATE", "SELECT"]);
        let body =
            "create function f() returns int begin atomic select case when true then 1 end; select 2; end; select 1";
        assert_eq!(tags(body), ["CREATE", "SELECT"]);
        assert_eq!(tags("do $$ begin; end; $$"), ["DO"]);
    }

    #[test]
    fn effects_follow_transactions_and_prepared_statements() {
        assert_eq!(effect("begin isolation level serializable"), Effect::Begin);
        assert_eq!(effect("rollback to savepoint a"), Effect::ToSavepoint);
        assert_eq!(effect("commit and chain"), Effect::End { commits: true, chains: true });
        assert_eq!(effect("prepare transaction 'x'"), Effect::End { commits: true, chains: false });
        assert_eq!(effect("PREPARE Foo(int) as select $1"), Effect::Prepare(b"foo".to_vec()));
        assert_eq!(effect("execute \"Foo\"(1)"), Effect::Execute(b"Foo".to_vec()));
        assert_eq!(effect("deallocate prepare foo"), Effect::Deallocate(b"foo".to_vec()));
        assert_eq!(effect("copy t (a) from stdin with (format csv)"), Effect::CopyIn);
        assert_eq!(effect("copy t to stdout"), Effect::None);
        assert_eq!(effect("copy t from '/tmp/stdin'"), Effect::None);
    }

    #[test]
    fn a_parameter_is_none_in_a_literal_or_a_name() {
        assert!(has_parameters(b"select $1") && has_parameters(b"select a+$12::int"));
        for sql in ["select '$1'", "select a$1", "select $$1$$", "select 1", "select $a$ $1 $a$"] {
            assert!(!has_parameters(sql.as_bytes()), "{sql}");
        }
    }
}
