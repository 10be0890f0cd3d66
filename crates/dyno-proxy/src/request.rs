//! Parameters of a proxy.

use std::path::PathBuf;

use serde::Deserialize;

/// Parameters of a proxy: its listening address, its server, and what to keep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Address and port to listen on.
    pub listen: String,
    /// Host of the server, or the folder of its socket.
    pub host: String,
    /// Port of the server.
    pub port: u16,
    /// Folder for the trace.
    pub out: PathBuf,
    /// Time after which the proxy stops [ns].
    #[serde(default)]
    pub for_ns: Option<u64>,
    /// How long the loop polls for the next message without sleeping [ns]; `None` to poll for as long as that is
    /// worthwhile.
    #[serde(default)]
    pub spin_ns: Option<u64>,
    /// True to keep messages with their values.
    #[serde(default)]
    pub binds: bool,
    /// PEM file of the certificate for clients.
    #[serde(default)]
    pub tls_cert: Option<PathBuf>,
    /// PEM file of the certificate's key.
    #[serde(default)]
    pub tls_key: Option<PathBuf>,
    /// TLS with the server: `disable`, `prefer`, `require`, `verify-ca` or `verify-full`.
    #[serde(default = "disable")]
    pub server_tls: String,
    /// PEM file of the root certificates with which the server's certificate is verified.
    #[serde(default)]
    pub server_ca: Option<PathBuf>,
}

fn disable() -> String {
    "disable".to_owned()
}

impl Request {
    /// Returns host and port of the server, for messages.
    pub fn server(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}
