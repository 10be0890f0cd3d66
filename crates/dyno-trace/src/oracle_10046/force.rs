//! Normalization of statements that differ only in literals.
//!
//! [`force_match`] replaces string and number literals by `:n`, collapses white space and converts everything outside
//! quotes to upper case, so that statements which would be the same with bind variables become the same text. Bind
//! variables (`:1`, `:name`), quoted names and comments, including hints, are kept. Oracle's `FORCE_MATCHING_SIGNATURE`
//! follows the same idea; the hashes are not comparable.

/// Returns the statement with `:n` for each literal; invalid UTF-8 is replaced.
pub fn force_match(sql: &[u8]) -> String {
    let mut folder = Folder { sql, at: 0, out: Vec::with_capacity(sql.len()), blank: false };
    while folder.at < sql.len() {
        folder.step();
    }
    String::from_utf8_lossy(&folder.out).into_owned()
}

struct Folder<'a> {
    sql: &'a [u8],
    at: usize,
    out: Vec<u8>,
    /// True if white space was read and not yet written.
    blank: bool,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#') || byte >= 0x80
}

impl Folder<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.sql.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn step(&mut self) {
        let byte = self.peek(0);
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | 0 => {
                self.blank = true;
                self.at += 1;
            }
            b'\'' => self.literal(1, b'\''),
            b'n' | b'N' if self.peek(1) == b'\'' => self.literal(2, b'\''),
            b'q' | b'Q' if self.peek(1) == b'\'' => self.quoted(2),
            b'n' | b'N' if matches!(self.peek(1), b'q' | b'Q') && self.peek(2) == b'\'' => {
                self.quoted(3);
            }
            b'"' => self.copy_through(1, b"\""),
            b'/' if self.peek(1) == b'*' => self.copy_through(2, b"*/"),
            b'-' if self.peek(1) == b'-' => self.copy_through(2, b"\n"),
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            b':' => {
                // The name of a bind variable may be a number.
                self.put(b":");
                self.at += 1;
                self.word();
            }
            _ if is_word(byte) => self.word(),
            _ => {
                self.put(&[byte]);
                self.at += 1;
            }
        }
    }

    /// Writes the bytes, after one blank if white space is pending.
    fn put(&mut self, bytes: &[u8]) {
        if self.blank && !self.out.is_empty() {
            self.out.push(b' ');
        }
        self.blank = false;
        self.out.extend_from_slice(bytes);
    }

    fn word(&mut self) {
        let from = self.at;
        while self.at < self.sql.len() && is_word(self.sql[self.at]) {
            self.at += 1;
        }
        let word = self.sql[from..self.at].to_ascii_uppercase();
        if !word.is_empty() {
            self.put(&word);
        }
    }

    /// Reads a string literal whose text begins `ahead` bytes after the current position; a doubled quote is part of
    /// the text.
    fn literal(&mut self, ahead: usize, quote: u8) {
        self.at += ahead;
        while self.at < self.sql.len() {
            let here = self.peek(0);
            self.at += 1;
            if here == quote {
                if self.peek(0) != quote {
                    break;
                }
                self.at += 1;
            }
        }
        self.put(b":n");
    }

    /// Reads a literal such as `q'[text]'`.
    fn quoted(&mut self, ahead: usize) {
        let close = match self.peek(ahead) {
            b'[' => b']',
            b'(' => b')',
            b'{' => b'}',
            b'<' => b'>',
            other => other,
        };
        self.at = (self.at + ahead + 1).min(self.sql.len());
        while self.at < self.sql.len() && !(self.peek(0) == close && self.peek(1) == b'\'') {
            self.at += 1;
        }
        self.at = (self.at + 2).min(self.sql.len());
        self.put(b":n");
    }

    fn number(&mut self) {
        while self.peek(0).is_ascii_digit() || self.peek(0) == b'.' {
            self.at += 1;
        }
        let signed = usize::from(matches!(self.peek(1), b'+' | b'-'));
        if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + signed).is_ascii_digit() {
            self.at += 1 + signed;
            while self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
        }
        if matches!(self.peek(0), b'f' | b'F' | b'd' | b'D') && !is_word(self.peek(1)) {
            self.at += 1;
        }
        self.put(b":n");
    }

    /// Copies everything up to and including `end` unchanged.
    fn copy_through(&mut self, ahead: usize, end: &[u8]) {
        let from = self.at;
        let body = (from + ahead).min(self.sql.len());
        let found = self.sql[body..].windows(end.len()).position(|window| window == end);
        self.at = found.map_or(self.sql.len(), |at| body + at + end.len());
        let text = self.sql[from..self.at].trim_ascii_end().to_vec();
        self.put(&text);
        // A comment to the end of the line takes its line end's blank with it.
        self.blank |= end == b"\n";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn same(a: &str, b: &str) -> bool {
        force_match(a.as_bytes()) == force_match(b.as_bytes())
    }

    #[test]
    fn statements_that_differ_in_literals_become_one() {
        let folded = force_match(b"select *\n from  t where a = 'x''y' and b=1.5e-3 and c in (.5, 10f)");
        assert_eq!(folded, "SELECT * FROM T WHERE A = :n AND B=:n AND C IN (:n, :n)");
        assert!(same("select q'[it's]' from t1", "select N'other' from T1"));
        assert!(same("select nq'{a}' from dual", "select 'b' from dual"));
    }

    #[test]
    fn names_binds_comments_and_quoted_names_stay() {
        assert_eq!(
            force_match(b"select /*+ index(t 1) */ \"My 1 Col\", t1.c2, :1, :B2 from t1 -- 5\nwhere x"),
            "SELECT /*+ index(t 1) */ \"My 1 Col\", T1.C2, :1, :B2 FROM T1 -- 5 WHERE X"
        );
        assert!(!same("select :1 from t", "select 1 from t"), "a bind is no literal");
    }

    #[test]
    fn unfinished_quotes_and_comments_end_with_the_text() {
        for text in ["select 'abc", "select q'[abc", "select \"abc", "select /* abc", "q'", "'", ":"] {
            force_match(text.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_folded(
            sql in prop::collection::vec(any::<u8>(), 0..200)
        ) {
            force_match(&sql);
        }

        #[test]
        fn the_value_of_a_literal_does_not_matter(a in "[a-z ]{0,9}", b in "[a-z ]{0,9}", n in 0u32..9999) {
            let first = format!("select c from t where x = '{a}' and y = {n}");
            let second = format!("SELECT  c from t\twhere x = '{b}' and y = 7");
            prop_assert!(same(&first, &second));
        }
    }
}
