//! Pieces of a text that `MariaDB`'s lexer splits differently from `PostgreSQL`'s.

use super::{Made, Piece, is_word, quoted};

fn words(rest: &[u8]) -> usize {
    rest.iter().take_while(|byte| is_word(**byte)).count()
}

/// Returns the first piece of a text; `None` if it follows `PostgreSQL`'s rules.
pub(super) fn piece(rest: &[u8]) -> Option<Made> {
    Some(match rest {
        // `a--1` is no comment.
        [b'-', b'-', next, ..] if *next > b' ' => (1, Piece::Other),
        [b'#', ..] => (rest.iter().take_while(|byte| **byte != b'\n').count(), Piece::Space),
        // What is in a comment for some versions only is executed: its ends are left out, and not its text.
        [b'/', b'*', b'!', ..] => (versioned(rest, 3), Piece::Space),
        [b'/', b'*', b'M', b'!', ..] => (versioned(rest, 4), Piece::Space),
        [b'*', b'/', ..] => (2, Piece::Space),
        [b'/', b'*', more @ ..] => {
            let end = more.windows(2).position(|pair| pair == b"*/");
            (end.map_or(rest.len(), |end| end + 4), Piece::Space)
        }
        [quote @ (b'\'' | b'"'), ..] => (quoted(rest, 1, *quote, true), Piece::Literal),
        [b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'', ..] => (quoted(rest, 2, b'\'', true), Piece::Literal),
        [b'`', ..] => (quoted(rest, 1, b'`', false), Piece::Other),
        [b'e' | b'E' | b'u' | b'U' | b'$', ..] => (words(rest), Piece::Other),
        _ => return None,
    })
}

/// Returns the length of the opening of an executable comment, including its version, such as `/*!50110`; `from` is the
/// length of the part before the version.
fn versioned(rest: &[u8], from: usize) -> usize {
    from + rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::super::{Dialect, normal_of};

    #[test]
    fn strings_names_and_comments_are_those_of_mariadb() {
        for (sql, expected) in [
            (r#"select 'it\'s', 'a''b', "say \"x\"" from `t 1`"#, "select ?, ?, ? from `t 1`"),
            ("select 1 # all\n from t -- x\nwhere a--1 = 2", "select ? from t where a-? = ?"),
            ("select e'x', $1$, u&1, x'ff', _utf8'ab'", "select e?, $1$, u&?, ?, _utf8?"),
            (
                "select /*!40001 sql_no_cache */ a /*M!100100 , b */ /* no /* */ from t",
                "select sql_no_cache a , b from t",
            ),
            (r"insert into t values (-1, 'x\\'), (2, 'y')", "insert into t values (?, ?), (?, ?)"),
        ] {
            assert_eq!(normal_of(sql.as_bytes(), Dialect::MariaDb), expected, "{sql}");
        }
    }
}
