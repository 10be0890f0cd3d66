//! Why there is no proxy, in a sentence, with the next step.

use dyno_evidence::EvidenceError;

/// Why a proxy cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The place to listen on.
    #[error("cannot listen on {0}: {1}\n  next: name another place with --listen")]
    Listen(String, std::io::Error),
    /// The server is not there.
    #[error("no server answers at {0}: {1}\n  next: check --to; it names the server's host and port")]
    Unreachable(String, std::io::Error),
    /// Keys and certificates.
    #[error("{0}\n  next: --tls-cert and --tls-key name PEM files of a certificate and of its key")]
    Certificate(String),
    /// How TLS with the server is to be.
    #[error("TLS with the server: {0}")]
    Trust(String),
    /// The system's other troubles.
    #[error("{0}: {1}")]
    System(String, std::io::Error),
    /// The evidence cannot be written.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Request(String),
}
