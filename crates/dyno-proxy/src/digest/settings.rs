//! Settings that a session changed before a statement.

use super::Session;

/// Settings that do not change what a statement does or how it is planned.
const IRRELEVANT: [&str; 9] = [
    "application_name",
    "client_encoding",
    "client_min_messages",
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "transaction_timeout",
    "extra_float_digits",
];

impl Session {
    /// Remembers a statement that changes settings; for SET LOCAL and `set_config`, remembers only that the transaction
    /// or session has such settings.
    pub(super) fn remember_setting(&mut self, sql: &[u8]) {
        let sql = String::from_utf8_lossy(sql);
        let mut words = sql.split(|c: char| c.is_whitespace() || c == '=').filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default().to_ascii_lowercase();
        if is_set_config(&sql) {
            self.unsettled = (true, self.unsettled.1 || !sql.to_ascii_lowercase().contains("true"));
        }
        let lower = |word: &str| word.trim_end_matches(';').to_ascii_lowercase();
        match first.as_str() {
            "set" => {
                let mut name = words.next().map(lower).unwrap_or_default();
                if name == "session" {
                    name = words.next().map(lower).unwrap_or_default();
                }
                if name == "local" {
                    let name = words.next().map(lower).unwrap_or_default();
                    self.unsettled.0 |= !IRRELEVANT.contains(&name.as_str());
                    return;
                }
                if matches!(name.as_str(), "transaction" | "characteristics" | "constraints")
                    || IRRELEVANT.contains(&name.as_str())
                    || sql.trim_end().trim_end_matches(';').contains(';')
                {
                    return;
                }
                self.settings.retain(|(known, _)| *known != name);
                self.settings.push((name, sql.trim().trim_end_matches(';').to_owned()));
                self.settings.sort();
            }
            "reset" | "discard" => {
                let name = words.next().map(lower).unwrap_or_default();
                if name == "all" {
                    self.settings.clear();
                } else {
                    self.settings.retain(|(known, _)| *known != name);
                }
            }
            _ => {}
        }
    }
}

/// Returns true if a text calls `set_config` for a setting that affects the results or plans of statements.
fn is_set_config(sql: &str) -> bool {
    let sql = sql.to_ascii_lowercase();
    sql.contains("set_config") && !IRRELEVANT.iter().any(|name| sql.contains(name))
}
