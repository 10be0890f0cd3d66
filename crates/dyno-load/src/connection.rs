//! Options of a connection: server, user, and how the server must authenticate itself.
//!
//! These are the libpq options that the load's client supports, with the same meaning as in libpq. Options that it does
//! not support are refused earlier, by `dbdyno.bench.postgres.wire_options`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::require_auth::{Method, RequireAuth};

/// Options of a connection: server, user, TLS, authentication and timeouts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionSpec {
    /// Engine whose protocol is spoken.
    #[serde(default)]
    pub engine: Engine,
    /// Host name, address, or folder of a Unix socket (MariaDB: path of the socket itself).
    ///
    /// The server's certificate must be issued for this name.
    pub host: String,
    /// Address to connect to instead of resolving `host`.
    #[serde(default)]
    pub hostaddr: Option<String>,
    /// Port number; for a Unix socket it is part of the socket's name.
    #[serde(default = "default_port")]
    pub port: u16,
    /// Role (MariaDB: user) to log in as.
    pub user: String,
    /// Password, for servers that require one.
    #[serde(default)]
    pub password: Option<Password>,
    /// Name of the database.
    pub dbname: String,
    /// Whether TLS is used, and how strictly the server's certificate is verified.
    #[serde(default)]
    pub sslmode: SslMode,
    /// PEM file of trusted root certificates; `system` means those of the machine.
    #[serde(default)]
    pub sslrootcert: Option<PathBuf>,
    /// PEM file of the server's RSA public key; `None` if not given.
    ///
    /// MariaDB's `caching_sha2_password` encrypts the password with it when there is no TLS.
    #[serde(default)]
    pub server_public_key: Option<PathBuf>,
    /// PEM file of certificate revocation lists.
    #[serde(default)]
    pub sslcrl: Option<PathBuf>,
    /// Folder of PEM files of certificate revocation lists.
    #[serde(default)]
    pub sslcrldir: Option<PathBuf>,
    /// True if the host name is sent unencrypted (SNI) when TLS begins.
    #[serde(default = "yes")]
    pub sslsni: bool,
    /// Whether TLS is requested in the server's protocol or begun immediately.
    #[serde(default)]
    pub sslnegotiation: SslNegotiation,
    /// Oldest TLS version that is accepted.
    #[serde(default)]
    pub ssl_min_protocol_version: Option<TlsVersion>,
    /// Newest TLS version that is accepted.
    #[serde(default)]
    pub ssl_max_protocol_version: Option<TlsVersion>,
    /// Whether the login is bound to the server's certificate.
    #[serde(default)]
    pub channel_binding: ChannelBinding,
    /// Authentication methods that the server is allowed to use.
    #[serde(default)]
    pub require_auth: RequireAuth,
    /// Command-line options for the server process.
    #[serde(default)]
    pub options: Option<String>,
    /// Application name, as shown in `pg_stat_activity`.
    #[serde(default = "default_application")]
    pub application_name: String,
    /// Timeout of a connection attempt [s]; 0 for none, so that only a request to stop ends the attempt.
    #[serde(default = "default_timeout")]
    pub connect_timeout_s: u64,
    /// How a dead network is detected.
    #[serde(default)]
    pub liveness: Liveness,
}

/// How a dead network is detected: keepalive probes and the TCP user timeout.
///
/// A connection on which nothing is acknowledged is closed. A value of 0 selects the operating system's default. With
/// the default values here, a dead network is detected within 25 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Liveness {
    /// True if a silent connection is probed.
    pub keepalives: bool,
    /// Silence before the first probe [s].
    pub keepalives_idle_s: u32,
    /// Time between two probes [s].
    pub keepalives_interval_s: u32,
    /// Number of unanswered probes after which the connection is closed.
    pub keepalives_count: u32,
    /// Time that sent bytes can stay unacknowledged before the connection is closed [ms].
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
    /// Returns true if `host` is the folder of a Unix socket.
    pub fn is_unix(&self) -> bool {
        self.host.starts_with('/')
    }

    /// Returns the timeout of a connection attempt; `None` means no timeout.
    pub fn connect_timeout(&self) -> Option<Duration> {
        (self.connect_timeout_s > 0).then(|| Duration::from_secs(self.connect_timeout_s))
    }

    /// Returns the smaller of the connection's timeout and `shorter`; `None` means no timeout.
    pub(crate) fn limit(&self, shorter: Option<Duration>) -> Option<Duration> {
        match (self.connect_timeout(), shorter) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns host, port, user and database as text for messages, without the password.
    pub fn place(&self) -> String {
        format!("host {}, port {}, user {}, database {}", self.host, self.port, self.user, self.dbname)
    }

    /// Returns true if the machine's own root certificates are trusted.
    pub fn trusts_system(&self) -> bool {
        self.sslrootcert.as_deref() == Some(Path::new("system"))
    }

    /// Returns the message for the first contradiction between options, or `None`.
    ///
    /// libpq refuses the same combinations before it sends anything.
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

/// Database engine whose protocol is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// PostgreSQL.
    #[default]
    Postgres,
    /// MariaDB.
    Mariadb,
}

/// Whether TLS is used, as in libpq's `sslmode`. (`allow` is missing: it is resolved to `require` or `disable` before,
/// depending on whether the control connection uses TLS.)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// TLS if the server offers it.
    #[default]
    Prefer,
    /// TLS always; the certificate is verified only if an `sslrootcert` is given.
    Require,
    /// TLS always, with a certificate signed by a trusted authority.
    VerifyCa,
    /// TLS always, with a certificate signed by a trusted authority and issued for this host name.
    VerifyFull,
}

/// How TLS begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SslNegotiation {
    /// The client asks the server first, in PostgreSQL's protocol.
    #[default]
    Postgres,
    /// The TLS handshake starts immediately; the server must confirm the protocol by ALPN.
    Direct,
}

/// TLS version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.0, which this client never speaks.
    #[serde(rename = "TLSv1")]
    V1,
    /// TLS 1.1, which this client never speaks.
    #[serde(rename = "TLSv1.1")]
    V1_1,
    /// TLS 1.2.
    #[serde(rename = "TLSv1.2")]
    V1_2,
    /// TLS 1.3.
    #[serde(rename = "TLSv1.3")]
    V1_3,
}

/// Whether the login is bound to the server's certificate, which excludes a man in the middle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelBinding {
    /// The login is never bound to the certificate.
    Disable,
    /// The login is bound to the certificate if TLS is used and the server offers it.
    #[default]
    Prefer,
    /// The login is always bound to the certificate; it fails where this is impossible.
    Require,
}

/// Password that only the handshake can read; `Debug` prints `(hidden)`.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// Wraps a password.
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
