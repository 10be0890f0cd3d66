//! Where and as whom to connect, and what the other side has to prove: the options of libpq that
//! the load's client honours, with libpq's meaning. What it does not honour never gets here: see
//! `dbdyno.bench.postgres.wire_options`, which refuses it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::require_auth::{Method, RequireAuth};

/// Where and as whom to connect.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionSpec {
    /// Whose protocol is spoken.
    #[serde(default)]
    pub engine: Engine,
    /// A host name, an address, or the folder of a Unix socket (MariaDB: the socket itself). Certificates are made out to
    /// it.
    pub host: String,
    /// The address to connect to in place of the host's own; no name is looked up then.
    #[serde(default)]
    pub hostaddr: Option<String>,
    /// Port, also of a Unix socket.
    #[serde(default = "default_port")]
    pub port: u16,
    /// Role.
    pub user: String,
    /// Password, if the server asks for one.
    #[serde(default)]
    pub password: Option<Password>,
    /// Database.
    pub dbname: String,
    /// How much TLS.
    #[serde(default)]
    pub sslmode: SslMode,
    /// PEM file of trusted roots; `system` are the machine's.
    #[serde(default)]
    pub sslrootcert: Option<PathBuf>,
    /// PEM file of the server's public key: MariaDB's `caching_sha2_password` without TLS seals the password for it.
    #[serde(default)]
    pub server_public_key: Option<PathBuf>,
    /// PEM file of revoked certificates.
    #[serde(default)]
    pub sslcrl: Option<PathBuf>,
    /// Folder of PEM files of revoked certificates.
    #[serde(default)]
    pub sslcrldir: Option<PathBuf>,
    /// Whether the host's name is sent in the clear when TLS begins.
    #[serde(default = "yes")]
    pub sslsni: bool,
    /// Whether TLS is asked for or begun at once.
    #[serde(default)]
    pub sslnegotiation: SslNegotiation,
    /// Oldest version of TLS.
    #[serde(default)]
    pub ssl_min_protocol_version: Option<TlsVersion>,
    /// Newest version of TLS.
    #[serde(default)]
    pub ssl_max_protocol_version: Option<TlsVersion>,
    /// Whether a login is tied to the server's certificate.
    #[serde(default)]
    pub channel_binding: ChannelBinding,
    /// How the server may ask who we are.
    #[serde(default)]
    pub require_auth: RequireAuth,
    /// Command-line options for the server process.
    #[serde(default)]
    pub options: Option<String>,
    /// Shown in `pg_stat_activity`.
    #[serde(default = "default_application")]
    pub application_name: String,
    /// Give up connecting after this many seconds; 0 waits until told to stop.
    #[serde(default = "default_timeout")]
    pub connect_timeout_s: u64,
    /// How a dead network is noticed.
    #[serde(default)]
    pub liveness: Liveness,
}

/// How a dead network is noticed: a connection on which nothing was acknowledged is given up.
/// 0 leaves a value to the operating system.
///
/// The values of a user who says nothing: a network that goes silent is noticed within 25 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Liveness {
    /// Whether a silent connection is probed at all.
    pub keepalives: bool,
    /// Silence before the first probe [s].
    pub keepalives_idle_s: u32,
    /// Between two probes [s].
    pub keepalives_interval_s: u32,
    /// Probes without an answer before the connection is given up.
    pub keepalives_count: u32,
    /// How long sent bytes may stay without acknowledgement [ms].
    pub tcp_user_timeout_ms: u32,
}

impl Default for Liveness {
    fn default() -> Self {
        Self {
            keepalives: true,
            keepalives_idle_s: 10,
            keepalives_interval_s: 5,
            keepalives_count: 3,
            tcp_user_timeout_ms: 25_000,
        }
    }
}

fn yes() -> bool {
    true
}

fn default_port() -> u16 {
    5432
}

fn default_application() -> String {
    "dbdyno".into()
}

fn default_timeout() -> u64 {
    10
}

impl ConnectionSpec {
    /// Whether `host` is the folder of a Unix socket.
    pub fn is_unix(&self) -> bool {
        self.host.starts_with('/')
    }

    /// The time allowed for connecting; `None` is without limit.
    pub fn connect_timeout(&self) -> Option<Duration> {
        (self.connect_timeout_s > 0).then(|| Duration::from_secs(self.connect_timeout_s))
    }

    /// The same, or a shorter one.
    pub(crate) fn limit(&self, shorter: Option<Duration>) -> Option<Duration> {
        match (self.connect_timeout(), shorter) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The place in words for messages; never with the password.
    pub fn place(&self) -> String {
        format!("host {}, port {}, user {}, database {}", self.host, self.port, self.user, self.dbname)
    }

    /// Whether the machine's own roots are trusted.
    pub fn trusts_system(&self) -> bool {
        self.sslrootcert.as_deref() == Some(Path::new("system"))
    }

    /// What cannot be meant, in words: libpq refuses the same before it sends anything.
    pub fn contradiction(&self) -> Option<&'static str> {
        use SslMode::{Disable, Prefer, VerifyCa, VerifyFull};
        let (mode, unix) = (self.sslmode, self.is_unix());
        let cases = [
            (self.host.is_empty() || self.user.is_empty(), "the connection has no host or no user"),
            (
                matches!(mode, VerifyCa | VerifyFull) && self.sslrootcert.is_none() && !unix,
                "sslmode verify-ca and verify-full need an sslrootcert",
            ),
            (
                self.trusts_system() && mode != VerifyFull && !unix,
                "sslrootcert=system trusts every public authority and needs sslmode=verify-full",
            ),
            (
                self.sslnegotiation == SslNegotiation::Direct && matches!(mode, Disable | Prefer) && !unix,
                "sslnegotiation=direct needs sslmode require, verify-ca or verify-full",
            ),
            (
                self.ssl_max_protocol_version.is_some_and(|newest| Some(newest) < self.ssl_min_protocol_version),
                "ssl_max_protocol_version is older than ssl_min_protocol_version",
            ),
            (
                self.ssl_max_protocol_version.is_some_and(|newest| newest < TlsVersion::V1_2) && !unix,
                "ssl_max_protocol_version is older than TLSv1.2, and nothing older is spoken here",
            ),
            (
                self.channel_binding == ChannelBinding::Require && (unix || mode == Disable),
                "channel_binding=require needs TLS",
            ),
        ];
        cases.iter().find(|(holds, _)| *holds).map(|(_, words)| *words)
    }
}

/// Whose protocol is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// PostgreSQL.
    #[default]
    Postgres,
    /// MariaDB.
    Mariadb,
}

/// How much TLS, as libpq's `sslmode`. (`allow` is settled by the control connection.)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    /// Never.
    Disable,
    /// If the server offers it.
    #[default]
    Prefer,
    /// Always; the certificate is checked only against a given `sslrootcert`.
    Require,
    /// Always, from a trusted authority.
    VerifyCa,
    /// Always, from a trusted authority and for this host name.
    VerifyFull,
}

/// How TLS begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SslNegotiation {
    /// The server is asked first.
    #[default]
    Postgres,
    /// At once; the server must name the protocol.
    Direct,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum TlsVersion {
    /// 1.0: never spoken.
    #[serde(rename = "TLSv1")]
    V1,
    /// 1.1: never spoken.
    #[serde(rename = "TLSv1.1")]
    V1_1,
    /// 1.2
    #[serde(rename = "TLSv1.2")]
    V1_2,
    /// 1.3
    #[serde(rename = "TLSv1.3")]
    V1_3,
}

/// Whether a login is tied to the server's certificate, so that nobody can stand in between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// Where TLS is used and the server offers it.
    #[default]
    Prefer,
    /// Always, or there is no login.
    Require,
}

/// A secret: readable by the handshake only, never printed.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    pub(crate) fn reveal(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contradiction(more: &str) -> Option<&'static str> {
        let text = format!(r#"{{"host": "h", "user": "u", "dbname": "d"{more}}}"#);
        serde_json::from_str::<ConnectionSpec>(&text).expect("is good").contradiction()
    }

    #[test]
    fn what_libpq_refuses_before_it_connects_is_refused_here() {
        for (more, expected) in [
            (r#", "sslmode": "verify-ca""#, "need an sslrootcert"),
            (r#", "sslmode": "verify-full""#, "need an sslrootcert"),
            (r#", "sslmode": "require", "sslrootcert": "system""#, "needs sslmode=verify-full"),
            (r#", "sslnegotiation": "direct""#, "direct needs sslmode require"),
            (r#", "ssl_min_protocol_version": "TLSv1.3", "ssl_max_protocol_version": "TLSv1.2""#, "is older than"),
            (r#", "ssl_max_protocol_version": "TLSv1.1""#, "nothing older is spoken here"),
            (r#", "channel_binding": "require", "sslmode": "disable""#, "needs TLS"),
        ] {
            let found = contradiction(more).unwrap_or_default();
            assert!(found.contains(expected), "{more}: {found:?}");
        }
        for more in ["", r#", "sslmode": "verify-full", "sslrootcert": "system""#, r#", "channel_binding": "require""#]
        {
            assert_eq!(contradiction(more), None, "{more}");
        }
    }

    #[test]
    fn an_option_that_is_not_known_is_refused() {
        for more in [r#", "sslcompression": "1""#, r#", "sslmode": "allow""#, r#", "require_auth": "cleartext""#] {
            let text = format!(r#"{{"host": "h", "user": "u", "dbname": "d"{more}}}"#);
            assert!(serde_json::from_str::<ConnectionSpec>(&text).is_err(), "{more}");
        }
    }
}
