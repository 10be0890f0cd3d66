//! TLS on both sides: with clients using the proxy's certificate, with the server as libpq's `sslmode` defines it.

use std::path::Path;
use std::sync::Arc;

use dyno_load::ConnectionSpec;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use serde_json::json;

use crate::{ProxyError, Request};

/// PostgreSQL's protocol name in ALPN.
const ALPN: &[u8] = b"postgresql";

/// TLS configuration of both sides.
pub(crate) struct Tls {
    clients: Option<Arc<ServerConfig>>,
    server: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// True if the server is asked for TLS but may refuse it.
    pub(crate) is_optional: bool,
}

impl Tls {
    /// Reads keys, certificates and roots.
    pub(crate) fn new(request: &Request) -> Result<Self, ProxyError> {
        let clients = match (&request.tls_cert, &request.tls_key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(with_clients(certificate, key)?),
            _ => return Err(ProxyError::Certificate("a certificate and its key are named together".to_owned())),
        };
        let spec: ConnectionSpec = serde_json::from_value(json!({
            "host": request.host, "port": request.port, "user": "-", "dbname": "-",
            "sslmode": request.server_tls, "sslrootcert": request.server_ca,
        }))
        .map_err(|error| ProxyError::Trust(error.to_string()))?;
        if let Some(words) = spec.contradiction() {
            return Err(ProxyError::Trust(words.to_owned()));
        }
        let config = dyno_load::tls_config(&spec).map_err(|error| ProxyError::Trust(error.to_string()))?;
        let server = match config {
            None => None,
            Some(config) => {
                let name = ServerName::try_from(request.host.clone())
                    .map_err(|_| ProxyError::Trust(format!("{:?} is not a host name", request.host)))?;
                Some((config, name))
            }
        };
        Ok(Self { clients, server, is_optional: request.server_tls == "prefer" })
    }

    /// Returns true if TLS is offered to clients.
    pub(crate) fn is_offered(&self) -> bool {
        self.clients.is_some()
    }

    /// Returns true if the server is asked for TLS.
    pub(crate) fn is_wanted(&self) -> bool {
        self.server.is_some()
    }

    /// Returns a new TLS connection with a client.
    pub(crate) fn with_client(&self) -> Option<Connection> {
        let config = self.clients.as_ref()?;
        ServerConnection::new(Arc::clone(config)).ok().map(Connection::Server)
    }

    /// Returns a new TLS connection with the server.
    pub(crate) fn with_server(&self) -> Option<Connection> {
        let (config, name) = self.server.as_ref()?;
        ClientConnection::new(Arc::clone(config), name.clone()).ok().map(Connection::Client)
    }
}

fn with_clients(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, ProxyError> {
    let failed = |path: &Path, why: String| ProxyError::Certificate(format!("{}: {why}", path.display()));
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(certificate).map_err(|error| failed(certificate, error.to_string()))?.collect();
    let chain = chain.map_err(|error| failed(certificate, error.to_string()))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS12, &TLS13])
        .map_err(|error| failed(certificate, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| failed(certificate, error.to_string()))?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Arc::new(config))
}
