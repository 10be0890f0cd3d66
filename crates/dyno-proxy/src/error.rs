//! Errors of the proxy, each with the next step.

use dyno_evidence::EvidenceError;

/// Reason why a proxy cannot begin or continue.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The proxy cannot listen on the requested address.
    #[error("cannot listen on {0}: {1}\n  next: name another address with --listen")]
    Listen(String, std::io::Error),
    /// The server cannot be reached.
    #[error("no server answers at {0}: {1}\n  next: check the server's host and port in --target")]
    Unreachable(String, std::io::Error),
    /// A certificate or key cannot be used.
    #[error("{0}\n  next: name PEM files of a certificate and of its key with --tls-cert and --tls-key")]
    Certificate(String),
    /// The settings of TLS with the server are invalid.
    #[error("TLS with the server: {0}")]
    Trust(String),
    /// Another call of the operating system failed.
    #[error("{0}: {1}")]
    System(String, std::io::Error),
    /// The evidence cannot be written.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// The request is invalid.
    #[error("{0}")]
    Request(String),
}
