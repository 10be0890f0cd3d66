//! TLS as libpq's `sslmode` means it.
//!
//! | sslmode | certificate |
//! |---|---|
//! | prefer, require | not checked; `require` with an `sslrootcert` is `verify-ca` |
//! | verify-ca | signed by a trusted root |
//! | verify-full | and made out to this host |
//!
//! A server's self-signed certificate may itself be the trusted root. Differences from libpq: a
//! host is looked for in the certificate's alternative names only, never in its common name, and
//! without an `sslrootcert` the system's roots are trusted.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::WireError;
use crate::spec::{ConnectionSpec, SslMode};

/// The rules for one connection; `None` where TLS is never used.
pub fn config(spec: &ConnectionSpec) -> Result<Option<Arc<ClientConfig>>, WireError> {
    if spec.is_unix() || spec.sslmode == SslMode::Disable {
        return Ok(None);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(Verifier::new(spec, Arc::clone(&provider))?);
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| WireError::Tls(e.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Some(Arc::new(config)))
}

/// Agrees on TLS; done when this returns, so that errors are those of the handshake.
pub fn handshake(
    spec: &ConnectionSpec,
    config: &Arc<ClientConfig>,
    stream: &mut TcpStream,
) -> Result<ClientConnection, WireError> {
    let name = ServerName::try_from(spec.host.clone())
        .map_err(|_| WireError::Tls(format!("{:?} is not a host name", spec.host)))?;
    let mut connection = ClientConnection::new(Arc::clone(config), name).map_err(|e| WireError::Tls(e.to_string()))?;
    while connection.is_handshaking() {
        connection.complete_io(stream)?;
    }
    Ok(connection)
}

#[derive(Debug)]
struct Verifier {
    /// `None`: any certificate will do.
    chain: Option<Arc<WebPkiServerVerifier>>,
    roots: Vec<CertificateDer<'static>>,
    check_name: bool,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(spec: &ConnectionSpec, provider: Arc<CryptoProvider>) -> Result<Self, WireError> {
        let file = spec.sslrootcert.as_deref().filter(|path| *path != Path::new("system"));
        let check = match spec.sslmode {
            SslMode::Disable | SslMode::Prefer => false,
            SslMode::Require => spec.sslrootcert.is_some(),
            SslMode::VerifyCa | SslMode::VerifyFull => true,
        };
        let mut verifier =
            Self { chain: None, roots: Vec::new(), check_name: spec.sslmode == SslMode::VerifyFull, provider };
        if check {
            verifier.roots = file.map_or_else(system_roots, file_roots)?;
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(verifier.roots.iter().cloned());
            let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(&verifier.provider));
            let chain = chain.build().map_err(|e| WireError::Tls(format!("trusted roots: {e}")))?;
            verifier.chain = Some(chain);
        }
        Ok(verifier)
    }
}

fn file_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, WireError> {
    let fail = |e: String| WireError::Tls(format!("sslrootcert {}: {e}", path.display()));
    let roots: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|e| fail(e.to_string()))?.collect();
    let roots = roots.map_err(|e| fail(e.to_string()))?;
    if roots.is_empty() { Err(fail("no certificate in it".into())) } else { Ok(roots) }
}

fn system_roots() -> Result<Vec<CertificateDer<'static>>, WireError> {
    let found = rustls_native_certs::load_native_certs();
    match found.errors.first() {
        Some(e) if found.certs.is_empty() => Err(WireError::Tls(format!("system roots: {e}"))),
        _ => Ok(found.certs),
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.check_name => Ok(ServerCertVerified::assertion()),
            // "An authority's certificate used as a server's": fine if it is the trusted root itself.
            // The chain's check comes to this after the dates.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.roots.iter().any(|root| root.as_ref() == certificate.as_ref()) =>
            {
                if self.check_name {
                    let parsed = ParsedCertificate::try_from(certificate)?;
                    rustls::client::verify_server_name(&parsed, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// `tls-server-end-point` of RFC 5929: the certificate hashed with its own signature's hash, with
/// SHA-256 in place of MD5 and SHA-1. `None` where the signature names no single hash.
pub fn end_point_hash(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA_SHA2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
    let (outer, _) = element(certificate, 0x30)?;
    let (_, after_body) = element(outer, 0x30)?;
    let (algorithm, _) = element(after_body, 0x30)?;
    let (name, _) = element(algorithm, 0x06)?;
    let (&last, family) = name.split_last()?;
    match (family, last) {
        (RSA, 4 | 5 | 11) | (ECDSA_SHA2, 2) => Some(Sha256::digest(certificate).to_vec()),
        (RSA, 12) | (ECDSA_SHA2, 3) => Some(Sha384::digest(certificate).to_vec()),
        (RSA, 13) | (ECDSA_SHA2, 4) => Some(Sha512::digest(certificate).to_vec()),
        _ if name == ECDSA_SHA1 => Some(Sha256::digest(certificate).to_vec()),
        _ => None,
    }
}

/// Splits DER into the contents of its first element, which must have this tag, and the rest.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.len() > 4 {
            return None;
        }
        (digits.iter().fold(0, |sum, &digit| sum << 8 | usize::from(digit)), rest)
    };
    if found == tag { rest.split_at_checked(length) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_follows_the_signature_of_the_certificate() {
        for (algorithm, bytes) in [(&rcgen::PKCS_ECDSA_P256_SHA256, 32), (&rcgen::PKCS_ECDSA_P384_SHA384, 48)] {
            let key = rcgen::KeyPair::generate_for(algorithm).expect("a key");
            let params = rcgen::CertificateParams::new(["localhost".into()]).expect("a name");
            let certificate = params.self_signed(&key).expect("a certificate");
            let hash = end_point_hash(certificate.der()).expect("a hash");
            assert_eq!(hash.len(), bytes);
        }
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
        let params = rcgen::CertificateParams::new(["localhost".into()]).expect("a name");
        assert_eq!(end_point_hash(params.self_signed(&key).expect("a certificate").der()), None);
    }

    #[test]
    fn what_is_no_certificate_has_no_hash() {
        for bytes in [&[][..], &[0x30], &[0x30, 0x80], &[0x30, 0x85, 1, 1, 1, 1, 1], &[0x30, 2, 0x30]] {
            assert_eq!(end_point_hash(bytes), None);
        }
    }
}
