//! Specification of a load: parsed from JSON and checked.
//!
//! ```
//! let spec = dyno_load::LoadSpec::from_json(
//!     r#"{"seed": 7, "arms": [{"name": "base", "sessions": 1,
//!         "connection": {"host": "/tmp", "user": "u", "dbname": "d"},
//!         "scripts": [{"name": "one", "text": "select 1;"}]}]}"#,
//! )?;
//! assert_eq!(spec.arms[0].connection.port, 5432);
//! # Ok::<(), dyno_load::LoadError>(())
//! ```

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;

use crate::LoadError;
use crate::connection::ConnectionSpec;
use crate::line::LineSpec;

/// Specification of a [`Load`](crate::Load).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Seed of every random stream; it has the same meaning as in `pgbench --random-seed`.
    pub seed: u64,
    /// How SQL is sent.
    #[serde(default)]
    pub protocol: Protocol,
    /// Instant from which `started_ns` counts.
    #[serde(default)]
    pub clock: ClockBase,
    /// Variants under test.
    pub arms: Vec<ArmSpec>,
}

/// How SQL is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// A statement is parsed once per connection, then bound and executed.
    #[default]
    Prepared,
    /// A statement is parsed, bound and executed every time.
    Extended,
    /// A statement is sent as text that contains the values.
    Simple,
}

/// Instant from which `started_ns` counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockBase {
    /// The UNIX epoch.
    #[default]
    Epoch,
}

/// One variant under test.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmSpec {
    /// Name of the arm in the evidence, which must be unique.
    pub name: String,
    /// Connection to the arm's server.
    pub connection: ConnectionSpec,
    /// SQL that runs once on each new connection, in order.
    #[serde(default)]
    pub session_sql: Vec<String>,
    /// Scripts; each transaction chooses one by weight.
    pub scripts: Vec<ScriptSpec>,
    /// Protocol of this arm, if it differs from the specification's.
    #[serde(default)]
    pub protocol: Option<Protocol>,
    /// Number of concurrent connections.
    pub sessions: u16,
    /// Mean arrival rate of an open loop [1/s]; `None` for a closed loop.
    #[serde(default)]
    pub rate_per_s: Option<f64>,
    /// Lateness above which an arrival in an open loop is skipped [ns].
    #[serde(default)]
    pub latency_limit_ns: Option<u64>,
    /// Maximum number of tries for a transaction that fails with SQLSTATE 40001 or 40P01.
    #[serde(default = "one")]
    pub max_tries: u8,
    /// Variables for the scripts, like those set with `pgbench -D`.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// `statement_timeout` of each session [ms]; if there is no answer 10 s after it, the client closes the connection.
    #[serde(default)]
    pub statement_timeout_ms: Option<u64>,
    /// True if a pooler can give each transaction a different server process; then no session settings are changed.
    #[serde(default)]
    pub pooled: bool,
    /// Errors that are expected outcomes, by SQLSTATE or MariaDB's number.
    ///
    /// Such errors are recorded in their rows, but do not count as errors.
    #[serde(default)]
    pub expected_errors: Vec<String>,
    /// Network line with delay or limited rate between the sessions and the server.
    #[serde(default)]
    pub network: Option<LineSpec>,
}

fn one() -> u8 {
    1
}

/// One script in pgbench's syntax.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptSpec {
    /// Name of the script in the evidence.
    pub name: String,
    /// Text of the script.
    pub text: String,
    /// Share of transactions, relative to the weights of the other scripts.
    #[serde(default = "one_weight")]
    pub weight: u32,
    /// Errors that are expected outcomes of this script, in addition to the arm's.
    #[serde(default)]
    pub expected_errors: Vec<String>,
}

fn one_weight() -> u32 {
    1
}

impl LoadSpec {
    /// Parses and checks a specification.
    ///
    /// # Errors
    /// The JSON does not parse, has an unknown key, or a value is out of range.
    pub fn from_json(text: &str) -> Result<Self, LoadError> {
        let spec: Self = serde_json::from_str(text).map_err(|e| LoadError::unreadable(&e))?;
        spec.check()?;
        Ok(spec)
    }

    /// Checks the constraints that the types cannot express.
    ///
    /// # Errors
    /// A value is invalid; the first such value is reported with its arm.
    pub fn check(&self) -> Result<(), LoadError> {
        if self.arms.is_empty() || self.arms.len() > usize::from(u16::MAX) {
            return Err(LoadError::spec("load", "there is no arm", "give at least one arm"));
        }
        let mut names = HashSet::new();
        for arm in &self.arms {
            if !names.insert(arm.name.as_str()) {
                let message = format!("two arms are named {:?}", arm.name);
                return Err(LoadError::spec("load", message, "give each arm a name of its own"));
            }
            arm.check()?;
        }
        Ok(())
    }
}

impl ArmSpec {
    fn check(&self) -> Result<(), LoadError> {
        let fail = |message: &str, next: &str| Err(LoadError::spec(format!("arm {}", self.name), message, next));
        if self.sessions == 0 {
            return fail("sessions is 0", "give at least 1 session");
        }
        if self.scripts.iter().map(|script| u64::from(script.weight)).sum::<u64>() == 0 {
            return fail("no script has a weight", "give a script with a weight of at least 1");
        }
        if self.max_tries == 0 {
            return fail("max_tries is 0", "use 1 for no retry");
        }
        if self.rate_per_s.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            return fail("rate_per_s is not a positive number", "leave rate_per_s out for a closed loop");
        }
        if self.latency_limit_ns.is_some() && self.rate_per_s.is_none() {
            return fail("latency_limit_ns needs an open loop", "give rate_per_s too");
        }
        match self.connection.contradiction() {
            Some(words) => fail(words, "correct the connection string"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::connection::SslMode;

    const GOOD: &str = r#"{"seed": 7, "arms": [{"name": "a", "sessions": 1,
        "connection": {"host": "h", "user": "u", "dbname": "d", "password": "geheim"},
        "scripts": [{"name": "s", "text": "select 1"}]}]}"#;

    fn message(text: &str) -> String {
        LoadSpec::from_json(text).expect_err("is bad").to_string()
    }

    #[test]
    fn defaults_are_those_of_the_documentation() {
        let spec = LoadSpec::from_json(GOOD).expect("is good");
        let arm = &spec.arms[0];
        assert_eq!(spec.protocol, Protocol::Prepared);
        assert_eq!((arm.max_tries, arm.scripts[0].weight), (1, 1));
        assert_eq!(arm.connection.sslmode, SslMode::Prefer);
        assert_eq!(arm.connection.connect_timeout(), Some(Duration::from_secs(10)));
    }

    #[test]
    fn a_password_is_never_printed() {
        let spec = LoadSpec::from_json(GOOD).expect("is good");
        assert!(!format!("{spec:?}").contains("geheim"));
        assert!(!spec.arms[0].connection.place().contains("geheim"));
    }

    #[test]
    fn bad_values_name_their_place() {
        let cases = [
            (GOOD.replace("\"sessions\": 1", "\"sessions\": 0"), "arm a: sessions is 0"),
            (GOOD.replace("\"seed\": 7", "\"seeds\": 7"), "unknown field `seeds`"),
            (GOOD.replace("\"sessions\": 1", "\"sessions\": 1, \"rate_per_s\": -1"), "rate_per_s"),
            (GOOD.replace("\"sessions\": 1", "\"sessions\": 1, \"max_tries\": 0"), "max_tries"),
            (GOOD.replace("\"sessions\": 1", "\"sessions\": 1, \"latency_limit_ns\": 5"), "needs an open loop"),
            (GOOD.replace("\"text\": \"select 1\"", "\"text\": \"\", \"weight\": 0"), "weight"),
            (r#"{"seed": 1, "arms": []}"#.into(), "there is no arm"),
            ("{".into(), "load: EOF"),
        ];
        for (text, expected) in cases {
            assert!(message(&text).contains(expected), "{}", message(&text));
        }
    }
}
