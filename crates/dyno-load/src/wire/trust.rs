//! Verification of a server's certificate by the rules of libpq and OpenSSL.
//!
//! webpki verifies the chain, but accepts any certificate as a root without examining it. The roots are therefore
//! examined here, as OpenSSL does: a root must name itself as its issuer, must be within its validity dates, and can
//! sign only if its key usage allows it. Other certificates of an `sslrootcert` file help to build the chain but are
//! not trusted by themselves. A server can present the trusted root itself, as with a self-signed certificate.
//!
//! Stricter than libpq: a host name is compared with the alternative names only, never with the common name; revocation
//! lists that the options name must exist; a root that the server presents itself is not accepted together with
//! revocation lists.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::WireError;
use super::x509::Facts;
use crate::connection::{ConnectionSpec, SslMode};

/// Verifier of the certificates of one arm's connections.
#[derive(Debug)]
pub struct Verifier {
    /// Trusted roots; `None` if any certificate is accepted.
    trust: Option<Trust>,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
struct Trust {
    roots: Vec<(CertificateDer<'static>, Facts)>,
    /// Certificates that are not roots but can be part of a chain.
    helpers: Vec<CertificateDer<'static>>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
    check_name: bool,
}

impl Verifier {
    /// Reads root certificates and revocation lists.
    ///
    /// # Errors
    /// A file cannot be read, there is no root certificate, or a named file or folder has no revocation list.
    pub fn new(spec: &ConnectionSpec, provider: Arc<CryptoProvider>) -> Result<Self, WireError> {
        let Some(file) = &spec.sslrootcert else {
            return Ok(Self { trust: None, provider });
        };
        let (roots, helpers) = if spec.trusts_system() {
            (system_roots()?, Vec::new())
        } else {
            file_certificates(file)?.into_iter().partition(|(_, facts)| facts.is_self_issued())
        };
        if roots.is_empty() {
            let file = file.display();
            return Err(WireError::Tls(format!("sslrootcert {file}: no root certificate (one that signed itself)")));
        }
        let trust = Trust {
            roots,
            helpers: helpers.into_iter().map(|(certificate, _)| certificate).collect(),
            revoked: revocation_lists(spec)?,
            check_name: spec.sslmode == SslMode::VerifyFull,
        };
        Ok(Self { trust: Some(trust), provider })
    }
}

type Certificate = (CertificateDer<'static>, Facts);

fn file_certificates(path: &Path) -> Result<Vec<Certificate>, WireError> {
    let fail = |e: String| WireError::Tls(format!("sslrootcert {}: {e}", path.display()));
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|e| fail(e.to_string()))?.collect();
    let found = found.map_err(|e| fail(e.to_string()))?;
    let read = |certificate: CertificateDer<'static>| {
        let facts = Facts::read(&certificate).ok_or_else(|| fail("holds a certificate that cannot be read".into()))?;
        Ok((certificate, facts))
    };
    found.into_iter().map(read).collect()
}

fn system_roots() -> Result<Vec<Certificate>, WireError> {
    let found = rustls_native_certs::load_native_certs();
    match found.errors.first() {
        Some(e) if found.certs.is_empty() => Err(WireError::Tls(format!("system roots: {e}"))),
        _ => Ok(found.certs.into_iter().filter_map(|c| Facts::read(&c).map(|facts| (c, facts))).collect()),
    }
}

/// Reads the revocation lists that the options name; fails if a named file or folder contains none.
fn revocation_lists(spec: &ConnectionSpec) -> Result<Vec<CertificateRevocationListDer<'static>>, WireError> {
    let mut lists = Vec::new();
    if let Some(file) = &spec.sslcrl {
        lists.extend(lists_of(file).map_err(|e| WireError::Tls(format!("sslcrl {}: {e}", file.display())))?);
    }
    if let Some(folder) = &spec.sslcrldir {
        let fail = |e: String| WireError::Tls(format!("sslcrldir {}: {e}", folder.display()));
        let mut files = 0;
        for entry in std::fs::read_dir(folder).map_err(|e| fail(e.to_string()))? {
            let path = entry.map_err(|e| fail(e.to_string()))?.path();
            if path.is_file() {
                lists.extend(lists_of(&path).map_err(fail)?);
                files += 1;
            }
        }
        if files == 0 {
            return Err(fail("holds no revocation list".into()));
        }
    }
    Ok(lists)
}

fn lists_of(file: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let found: Result<Vec<_>, _> =
        CertificateRevocationListDer::pem_file_iter(file).map_err(|e| e.to_string())?.collect();
    match found {
        Ok(lists) if lists.is_empty() => Err("no revocation list in it".into()),
        other => other.map_err(|e| e.to_string()),
    }
}

/// Certificates that a server presents, the host name for which it presents them, and the time.
struct Shown<'a> {
    certificate: &'a CertificateDer<'a>,
    intermediates: &'a [CertificateDer<'a>],
    name: &'a ServerName<'a>,
    now: UnixTime,
}

impl Trust {
    fn verify(&self, provider: &Arc<CryptoProvider>, shown: &Shown<'_>) -> Result<(), Error> {
        let Shown { certificate, name, now, .. } = *shown;
        let facts = Facts::read(certificate).ok_or(CertificateError::BadEncoding)?;
        if !facts.may_serve() {
            return Err(CertificateError::InvalidPurpose.into());
        }
        if self.roots.iter().any(|(root, _)| root.as_ref() == certificate.as_ref()) {
            self.verify_root_itself(&facts, now)?;
        } else {
            self.verify_chain(provider, shown)?;
        }
        if self.check_name {
            rustls::client::verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        }
        Ok(())
    }

    /// Verifies a trusted root that the server itself presents: its key is already trusted, so only its validity dates
    /// are checked.
    fn verify_root_itself(&self, facts: &Facts, now: UnixTime) -> Result<(), Error> {
        if !facts.is_valid_at(now) {
            return Err(CertificateError::Expired.into());
        }
        if self.revoked.is_empty() { Ok(()) } else { Err(CertificateError::UnknownRevocationStatus.into()) }
    }

    fn verify_chain(&self, provider: &Arc<CryptoProvider>, shown: &Shown<'_>) -> Result<(), Error> {
        let mut store = RootCertStore::empty();
        let usable = self.roots.iter().filter(|(_, facts)| facts.may_sign() && facts.is_valid_at(shown.now));
        store.add_parsable_certificates(usable.map(|(root, _)| root.clone()));
        let mut builder = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider));
        if !self.revoked.is_empty() {
            builder = builder.with_crls(self.revoked.iter().cloned()).enforce_revocation_expiration();
        }
        let chain = builder.build().map_err(|_| CertificateError::UnknownIssuer)?;
        let signers = shown.intermediates.iter().chain(&self.helpers);
        let signers: Vec<CertificateDer<'_>> =
            signers.filter(|c| Facts::read(c).is_some_and(|facts| facts.may_sign())).cloned().collect();
        match chain.verify_server_cert(shown.certificate, &signers, shown.name, &[], shown.now) {
            // webpki checks the chain before the name; the name is checked by the caller if required.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(trust) = &self.trust {
            trust.verify(&self.provider, &Shown { certificate, intermediates, name, now })?;
        }
        Ok(ServerCertVerified::assertion())
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
