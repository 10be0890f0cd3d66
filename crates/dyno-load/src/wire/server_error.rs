//! Errors from the server, and which parts of them the evidence may contain.
//!
//! A message can contain a value of a row: `invalid input syntax for type integer: "…"`. Evidence must not contain
//! values, so only these parts of an error are kept:
//!
//! - its SQLSTATE and severity;
//! - the names of constraint, table, column and type, which the server sends as separate fields;
//! - its message, in which `…` replaces some text. A quoted text is replaced unless it is such a name, or part of a
//!   text that the evidence contains anyway (the script, the SQL of the session). A word with a digit is replaced
//!   unless it is part of that text. In errors of class 22 (data) every quoted text counts as a value.
//!
//! DETAIL, HINT and CONTEXT are not even read. Messages that user code makes (RAISE, other procedural languages,
//! foreign data) can contain anything and are left out completely. MariaDB does not show whether a message is the
//! server's own: a message is kept if it matches the pattern of the server's own message with that number, see
//! `mysql/known_errors.rs`. A PostgreSQL message that an external client reports is kept only if the client also
//! reports the server's routine.

use std::fmt::{self, Write};

use crate::mysql::known_error;

/// Longest message that is kept [characters]; a longer one is cut.
const WORDS_MAX: usize = 300;
const QUOTES: [char; 10] = ['"', '\'', '`', '«', '»', '„', '“', '”', '‘', '’'];
/// SQLSTATE classes whose messages PostgreSQL itself does not write.
const FOREIGN_CLASSES: [&str; 4] = ["P0", "38", "39", "HV"];
/// Prefixes of the server routines that report a message written by user code, whatever its SQLSTATE.
const FOREIGN_ROUTINES: [&str; 5] = ["exec_stmt_", "PLy_", "plperl", "pltcl", "croak"];

/// SQLSTATE class of lost connections; the driver writes the messages of this class, not a server.
const LOST_CLASS: &str = "08";

/// MariaDB's error numbers of SIGNAL and RESIGNAL without an explicit number.
const MARIADB_FOREIGN: [u16; 3] = [1642, 1643, 1644];
/// MariaDB's error numbers after which the connection is closed: shutdown, killed session, lost packets.
const MARIADB_FATAL: [u16; 7] = [1053, 1152, 1158, 1159, 1160, 1161, 1927];

/// Error from the server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL` or `PANIC`, in English whatever the server's language is.
    pub severity: String,
    /// SQLSTATE.
    pub code: String,
    /// MariaDB's error number; 0 if there is none.
    pub vendor: u16,
    /// Name of the violated constraint.
    pub constraint: Option<String>,
    message: String,
    /// Names of objects, from fields that contain only a name.
    names: Vec<String>,
    foreign: bool,
}

impl ServerError {
    /// Parses the body of an `ErrorResponse`; missing fields stay empty.
    pub fn parse(body: &[u8]) -> Self {
        let mut error = Self::default();
        let (mut localised, mut routine) = (String::new(), String::new());
        for field in body.split(|&b| b == 0) {
            let Some((kind, text)) = field.split_first() else { continue };
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                b'S' => localised = text,
                b'V' => error.severity = text,
                b'C' => error.code = text,
                b'M' => error.message = text,
                b'R' => routine = text,
                b'n' => {
                    error.constraint = Some(text.clone());
                    error.names.push(text);
                }
                b's' | b't' | b'c' | b'd' => error.names.push(text),
                _ => {}
            }
        }
        if error.severity.is_empty() {
            error.severity = localised;
        }
        if !matches!(error.severity.as_str(), "FATAL" | "PANIC") {
            error.severity = "ERROR".into();
        }
        if !is_state(&error.code) {
            error.code = "XX000".into();
        }
        error.foreign = FOREIGN_CLASSES.iter().any(|class| error.code.starts_with(class))
            || FOREIGN_ROUTINES.iter().any(|beginning| routine.starts_with(beginning));
        error
    }

    /// Parses the body of MariaDB's error packet: 0xff, the error number, `#` and the SQLSTATE, and the message.
    ///
    /// A message counts as user code's (SIGNAL) if it has the number or the SQLSTATE of such messages.
    pub fn mariadb(body: &[u8]) -> Self {
        let vendor = body.get(1..3).map_or(0, |number| u16::from_le_bytes([number[0], number[1]]));
        let rest = body.get(3..).unwrap_or_default();
        let (code, message) = match rest.strip_prefix(b"#").and_then(|rest| rest.split_at_checked(5)) {
            Some((code, message)) => (String::from_utf8_lossy(code).into_owned(), message),
            None => ("HY000".into(), rest),
        };
        let fatal = MARIADB_FATAL.contains(&vendor) || code == "08S01";
        Self {
            severity: if fatal { "FATAL" } else { "ERROR" }.into(),
            foreign: MARIADB_FOREIGN.contains(&vendor) || code.starts_with("45"),
            code: if is_state(&code) { code } else { "HY000".into() },
            vendor,
            message: String::from_utf8_lossy(message).into_owned(),
            ..Self::default()
        }
    }

    /// Returns the error that an external client reports.
    ///
    /// `text` is the message, followed by fields of an `ErrorResponse`, each preceded by a zero byte, such as
    /// `Rexec_stmt_raise` or `nonce_pkey`. Without the field of the server's routine (`R`), the origin of a PostgreSQL
    /// message is unknown.
    pub fn reported(code: &str, vendor: u16, text: &str) -> Self {
        let (message, fields) = text.split_once('\0').unwrap_or((text, ""));
        let routine = fields.split('\0').any(|field| field.len() > 1 && field.starts_with('R'));
        let mut error = Self::parse(fields.as_bytes());
        error.foreign |= FOREIGN_CLASSES.iter().any(|class| code.starts_with(class))
            || MARIADB_FOREIGN.contains(&vendor)
            || code.starts_with("45")
            || (vendor == 0 && !routine && !code.starts_with(LOST_CLASS));
        Self { severity: "ERROR".into(), code: code.into(), vendor, message: message.into(), ..error }
    }

    /// Returns an error that this client raises, in the form of a server's error; its message must not contain values.
    pub fn ours(code: &str, message: String) -> Self {
        Self { severity: "ERROR".into(), code: code.into(), message, ..Self::default() }
    }

    /// Returns true if the server ends the connection after this error.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    /// Returns the message with values removed; text that occurs in `known` is not removed.
    pub fn said(&self, known: &str) -> String {
        let left_out = "(a message of the server's own code, left out)";
        match known_error(self.vendor) {
            _ if self.foreign => left_out.into(),
            None if self.vendor == 0 => self.message(known),
            None => "(a message that is not known to hold no value, left out)".into(),
            Some(own) => {
                let says = |text: &str| text.contains(char::is_alphabetic) && self.may_show(text, known);
                own.without_values(&self.message, says).map_or_else(|| left_out.into(), |text| in_one_line(&text))
            }
        }
    }

    /// Returns the error as one line, with values removed; text that occurs in `known` is not removed.
    pub fn words(&self, known: &str) -> String {
        let message = self.said(known);
        match self.vendor {
            0 => format!("{}: {message} (SQLSTATE {})", self.severity, self.code),
            vendor => format!("{} {vendor}: {message} (SQLSTATE {})", self.severity, self.code),
        }
    }

    fn message(&self, known: &str) -> String {
        let mut out = String::new();
        let mut rest = self.message.as_str();
        while let Some((before, quote, inside)) = next_quote(rest) {
            plain(before, known, &mut out);
            let quoted = inside.find(|c| QUOTES.contains(&c)).map(|end| inside.split_at(end));
            let Some((text, after)) = quoted.filter(|(text, _)| self.may_show(text, known)) else {
                // The value may contain quotes itself: it extends to the last of them.
                let end = inside.rfind(|c| QUOTES.contains(&c)).map_or(inside.len(), |at| at);
                out.push(quote);
                out.push('…');
                rest = &inside[end..];
                let closing = rest.chars().next();
                out.extend(closing);
                rest = &rest[closing.map_or(0, char::len_utf8)..];
                continue;
            };
            let closing = after.chars().next();
            out.push(quote);
            out.push_str(text);
            out.extend(closing);
            rest = &after[closing.map_or(0, char::len_utf8)..];
        }
        plain(rest, known, &mut out);
        in_one_line(&out)
    }

    fn may_show(&self, text: &str, known: &str) -> bool {
        let is_name = self.names.iter().any(|name| name == text);
        is_name || (!self.code.starts_with("22") && !text.trim().is_empty() && known.contains(text))
    }
}

fn in_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS_MAX).collect()
}

fn is_state(code: &str) -> bool {
    code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Returns the text up to the next opening quote, the quote, and the rest; an apostrophe does not count as a quote.
fn next_quote(text: &str) -> Option<(&str, char, &str)> {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let apostrophe = matches!(c, '\'' | '’') && before.is_alphanumeric();
        if QUOTES.contains(&c) && !apostrophe {
            return Some((&text[..at], c, &text[at + c.len_utf8()..]));
        }
        before = c;
    }
    None
}

/// Appends text that is outside of quotes; words that contain a digit are replaced, because they can be values.
fn plain(text: &str, known: &str, out: &mut String) {
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if bare.contains(|c: char| c.is_numeric()) && !known.contains(bare) {
            let start = word.find(bare).unwrap_or(0);
            // Writing into a string does not fail.
            let _ = write!(out, "{}…{}", &word[..start], &word[start + bare.len()..]);
        } else {
            out.push_str(word);
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words(""))
    }
}

/// Prints the same text as `Display`, which contains no values.
impl fmt::Debug for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(fields: &[(char, &str)]) -> ServerError {
        let mut body = Vec::new();
        for (kind, text) in fields {
            body.extend_from_slice(format!("{kind}{text}\0").as_bytes());
        }
        body.push(0);
        ServerError::parse(&body)
    }

    #[test]
    fn detail_and_hint_are_dropped_and_the_constraint_is_kept() {
        let error = error(&[
            ('S', "FEHLER"),
            ('V', "ERROR"),
            ('C', "23505"),
            ('M', "duplicate key value violates unique constraint \"once_pkey\""),
            ('D', "Key (id)=(4711) already exists."),
            ('H', "try 4712"),
            ('W', "SQL statement \"insert 4711\""),
            ('n', "once_pkey"),
        ]);
        assert_eq!(error.constraint.as_deref(), Some("once_pkey"));
        assert!(!error.is_fatal());
        assert_eq!(
            error.to_string(),
            "ERROR: duplicate key value violates unique constraint \"once_pkey\" (SQLSTATE 23505)"
        );
        assert!(!format!("{error:?}").contains("471"));
    }

    #[test]
    fn what_a_client_reports_is_kept_as_if_the_server_had_said_it_to_us() {
        let said = |code: &str, vendor: u16, text: &str| ServerError::reported(code, vendor, text).said("");
        let duplicate = "duplicate key value violates unique constraint \"once_pkey\"";
        assert_eq!(said("23505", 0, &format!("{duplicate}\0R_bt_check_unique\0nonce_pkey")), duplicate);
        let unnamed = "duplicate key value violates unique constraint \"…\"";
        assert_eq!(said("23505", 0, &format!("{duplicate}\0R_bt_check_unique")), unnamed);
        assert_eq!(said("08006", 0, "server closed the connection"), "server closed the connection");
        assert_eq!(said("23000", 1062, "Duplicate entry '4711' for key 'PRIMARY'"), "Duplicate entry '…' for key …");
        assert_eq!(ServerError::reported("23000", 1062, "x").words("").split(':').next(), Some("ERROR 1062"));
    }

    #[test]
    fn what_a_client_reports_without_whose_it_is_is_left_out() {
        let raised = "customer hunter owes\0Rexec_stmt_raise";
        for text in ["customer hunter owes", raised, "customer hunter owes\0ncustomer hunter owes\0R"] {
            let error = ServerError::reported("23514", 0, text);
            assert!(!error.words("").contains("hunter"), "{error:?}");
        }
        for (code, vendor) in [("45000", 0), ("45000", 1644), ("HY000", 65_000), ("P0001", 0), ("23000", 1062)] {
            let error = ServerError::reported(code, vendor, "hunter\0Relog");
            assert!(!error.words("").contains("hunter"), "{error:?}");
        }
    }

    #[test]
    fn a_value_in_a_message_is_left_out_in_whatever_quotes() {
        let secret = "hunter";
        for message in [
            "invalid input syntax for type integer: \"hunter\"",
            "invalid input syntax for type integer: \"a\" hunter \"b\"",
            "ungültige Eingabesyntax für Typ integer: »hunter«",
            "syntaxe invalide pour l'entier : « hunter »",
            "malformed array literal: \"{hunter\"",
            "unterminated quoted string at or near \"'hunter\"",
            "it is not 'hunter'",
            "could not open \"hunter",
        ] {
            for code in ["22P02", "42601", "XX000"] {
                let words = error(&[('V', "ERROR"), ('C', code), ('M', message)]).words("select integer");
                assert!(!words.contains(secret), "{words}");
                assert!(words.contains('…') && words.contains(code), "{words}");
            }
        }
    }

    #[test]
    fn words_of_the_script_stay_readable() {
        let error = error(&[('V', "ERROR"), ('C', "42P01"), ('M', "relation \"accounts\" does not exist at 17")]);
        let known = "select v from accounts where id = :id";
        assert_eq!(error.words(known), "ERROR: relation \"accounts\" does not exist at … (SQLSTATE 42P01)");
        assert_eq!(error.words(""), "ERROR: relation \"…\" does not exist at … (SQLSTATE 42P01)");
    }

    #[test]
    fn what_a_servers_own_code_says_is_left_out() {
        for fields in [
            [('C', "P0001"), ('M', "client hunter is broke"), ('R', "")],
            [('C', "23505"), ('M', "client hunter is broke"), ('R', "exec_stmt_raise")],
            [('C', "38000"), ('M', "ValueError: hunter"), ('R', "PLy_elog_impl")],
        ] {
            let words = error(&fields).words("hunter");
            assert!(!words.contains("hunter") && words.contains("left out"), "{words}");
        }
    }

    #[test]
    fn an_error_of_mariadb_has_its_number_and_no_value() {
        let packet = |number: u16, text: &str| [&[0xff][..], &number.to_le_bytes(), text.as_bytes()].concat();
        let error = ServerError::mariadb(&packet(1062, "#23000Duplicate entry 'hunter' for key 'PRIMARY'"));
        assert_eq!((error.code.as_str(), error.vendor, error.is_fatal()), ("23000", 1062, false));
        assert_eq!(error.words("x"), "ERROR 1062: Duplicate entry '…' for key … (SQLSTATE 23000)");
        let signal = ServerError::mariadb(&packet(1644, "#45000client hunter is broke"));
        assert!(!signal.words("hunter").contains("hunter"), "{signal}");
        let borrowed = ServerError::mariadb(&packet(1062, "#23000client hunter is broke"));
        assert!(!borrowed.words("client").contains("hunter") && borrowed.words("").contains("left out"), "{borrowed}");
        let rare = ServerError::mariadb(&packet(1999, "#HY000client hunter is broke"));
        assert!(!rare.words("client").contains("hunter") && rare.words("").contains("ERROR 1999"), "{rare}");
        let early = ServerError::mariadb(&packet(1040, "Too many connections"));
        assert_eq!((early.code.as_str(), early.is_fatal()), ("HY000", false));
        assert!(ServerError::mariadb(&packet(1927, "#70100Connection was killed")).is_fatal());
        assert_eq!(ServerError::mariadb(&[0xff]).code, "HY000");
    }

    #[test]
    fn neither_code_nor_severity_carries_a_message() {
        let error = error(&[('V', "hunter"), ('S', "hunter"), ('C', "hunt!"), ('M', "\u{1b}]0;title\u{7}")]);
        assert_eq!((error.severity.as_str(), error.code.as_str()), ("ERROR", "XX000"));
        assert!(!error.to_string().contains('\u{1b}'));
        assert_eq!(ServerError::parse(b"junk").code, "XX000");
    }

    proptest! {
        #[test]
        fn no_value_survives_in_an_error_about_data(value in "[a-zA-Z0-9\"'« ]{4,40}") {
            let marked = format!("hunter{value}hunter");
            let message = format!("invalid input syntax for type integer: \"{marked}\"");
            let words = error(&[('C', "22P02"), ('M', &message)]).words(&value);
            prop_assert!(!words.contains("hunter"), "{}", words);
        }
    }
}
