//! What the proxy is asked to do.

use std::path::PathBuf;

use serde::Deserialize;

/// Where to listen, whom to ask, what to keep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Address and port.
    pub listen: String,
    /// The server's host, or the folder of its socket.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Folder to write into.
    pub out: PathBuf,
    /// Stops by itself.
    #[serde(default)]
    pub for_ns: Option<u64>,
    /// How long after a message the next is looked for without sleep; without it, as long as it pays.
    #[serde(default)]
    pub spin_ns: Option<u64>,
    /// Whether messages are kept with their values.
    #[serde(default)]
    pub binds: bool,
    /// PEM file of the certificate for clients.
    #[serde(default)]
    pub tls_cert: Option<PathBuf>,
    /// PEM file of its key.
    #[serde(default)]
    pub tls_key: Option<PathBuf>,
    /// TLS with the server: `disable`, `prefer`, `require`, `verify-ca`, `verify-full`.
    #[serde(default = "disable")]
    pub server_tls: String,
    /// PEM file of the roots that the server's certificate is held to.
    #[serde(default)]
    pub server_ca: Option<PathBuf>,
}

fn disable() -> String {
    "disable".to_owned()
}

impl Request {
    /// The server's place in words.
    pub fn server(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}
