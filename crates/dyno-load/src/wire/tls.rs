//! TLS according to libpq's options.
//!
//! | sslmode | certificate |
//! |---|---|
//! | prefer, require | verified as with `verify-ca` if there is an `sslrootcert`, otherwise not verified |
//! | verify-ca | signed by a trusted root |
//! | verify-full | signed by a trusted root and issued for this host |
//!
//! [`trust`](super::trust) verifies certificates. Versions before TLS 1.2 are never used, whatever
//! `ssl_min_protocol_version` allows.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, SupportedProtocolVersion};

use super::WireError;
use super::stream::Wire;
use super::trust::Verifier;
use crate::connection::{ConnectionSpec, Engine, SslMode, SslNegotiation, TlsVersion};

/// PostgreSQL's protocol name in ALPN.
const ALPN: &[u8] = b"postgresql";

/// Returns the TLS configuration of a connection, or `None` if the connection never uses TLS.
///
/// # Errors
/// The root certificates or revocation lists cannot be read.
pub fn config(spec: &ConnectionSpec) -> Result<Option<Arc<ClientConfig>>, WireError> {
    if spec.is_unix() || spec.sslmode == SslMode::Disable {
        return Ok(None);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(Verifier::new(spec, Arc::clone(&provider))?);
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(spec))
        .map_err(|e| WireError::Tls(e.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.enable_sni = spec.sslsni;
    if spec.engine == Engine::Postgres {
        config.alpn_protocols = vec![ALPN.to_vec()];
    }
    Ok(Some(Arc::new(config)))
}

fn versions(spec: &ConnectionSpec) -> Vec<&'static SupportedProtocolVersion> {
    let oldest = spec.ssl_min_protocol_version.unwrap_or(TlsVersion::V1_2);
    let newest = spec.ssl_max_protocol_version.unwrap_or(TlsVersion::V1_3);
    let known = [(TlsVersion::V1_2, &TLS12), (TlsVersion::V1_3, &TLS13)];
    known.into_iter().filter(|(version, _)| (oldest..=newest).contains(version)).map(|(_, known)| known).collect()
}

/// Runs the complete TLS handshake, so that its errors are reported here.
///
/// # Errors
/// The handshake fails, or the server does not confirm PostgreSQL's protocol with direct negotiation.
pub fn handshake(
    spec: &ConnectionSpec,
    config: &Arc<ClientConfig>,
    wire: &mut Wire,
) -> Result<ClientConnection, WireError> {
    let name = ServerName::try_from(spec.host.clone())
        .map_err(|_| WireError::Tls(format!("{:?} is not a host name", spec.host)))?;
    let mut connection = ClientConnection::new(Arc::clone(config), name).map_err(|e| WireError::Tls(e.to_string()))?;
    while connection.is_handshaking() {
        connection.complete_io(wire)?;
    }
    if spec.sslnegotiation == SslNegotiation::Direct && connection.alpn_protocol() != Some(ALPN) {
        return Err(WireError::Tls("the server did not say that it speaks PostgreSQL (ALPN), as direct needs".into()));
    }
    Ok(connection)
}
