//! Parts of a certificate that OpenSSL examines and webpki does not, and the certificate's hash for channel binding.
//!
//! These parts are the validity dates of a trusted root, its right to sign, and the key usage of every certificate. The
//! encoding is DER (RFC 5280); callers refuse a certificate that cannot be parsed.

use rustls::pki_types::UnixTime;
use sha2::{Digest, Sha256, Sha384, Sha512};

const SEQUENCE: u8 = 0x30;
const OID: u8 = 0x06;
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
/// The key usages digitalSignature, keyEncipherment and keyAgreement, as bits of the first byte.
const USAGE_TLS: u8 = 0x80 | 0x20 | 0x08;
/// The key usage keyCertSign, as a bit of the first byte.
const USAGE_SIGN: u8 = 0x04;

/// Properties that a certificate states about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    self_issued: bool,
    not_before_s: i64,
    not_after_s: i64,
    version_1: bool,
    /// First eight bits of keyUsage; `None` without that extension.
    usage: Option<u8>,
    /// True if basicConstraints declares an authority; `None` without that extension.
    authority: Option<bool>,
    /// True if extendedKeyUsage allows TLS servers; `None` without that extension.
    serves: Option<bool>,
}

impl Facts {
    /// Parses a certificate; returns `None` if it cannot be parsed.
    pub fn read(certificate: &[u8]) -> Option<Self> {
        let (outer, _) = element(certificate, SEQUENCE)?;
        let (mut body, _) = element(outer, SEQUENCE)?;
        let version_1 = match element(body, 0xa0) {
            Some((_, rest)) => {
                body = rest;
                false
            }
            None => true,
        };
        let (_, rest) = element(body, 0x02)?; // serial number
        let (_, rest) = element(rest, SEQUENCE)?; // signature
        let (issuer, rest) = element(rest, SEQUENCE)?;
        let (validity, rest) = element(rest, SEQUENCE)?;
        let (subject, rest) = element(rest, SEQUENCE)?;
        let (_, mut rest) = element(rest, SEQUENCE)?; // public key
        let (not_before_s, after) = time(validity)?;
        let (not_after_s, _) = time(after)?;
        let self_issued = issuer == subject;
        let mut facts =
            Self { self_issued, not_before_s, not_after_s, version_1, usage: None, authority: None, serves: None };
        while let Some((&tag, _)) = rest.split_first() {
            let (value, after) = element(rest, tag)?;
            if tag == 0xa3 {
                facts.read_extensions(value)?;
            }
            rest = after;
        }
        Some(facts)
    }

    fn read_extensions(&mut self, wrapped: &[u8]) -> Option<()> {
        let (mut list, _) = element(wrapped, SEQUENCE)?;
        while !list.is_empty() {
            let (extension, rest) = element(list, SEQUENCE)?;
            let (name, after) = element(extension, OID)?;
            // critical: BOOLEAN DEFAULT FALSE
            let after = element(after, 0x01).map_or(after, |(_, after)| after);
            let (value, _) = element(after, 0x04)?;
            match name {
                KEY_USAGE => {
                    let (bits, _) = element(value, 0x03)?;
                    self.usage = Some(bits.get(1).copied().unwrap_or(0));
                }
                BASIC_CONSTRAINTS => {
                    let (fields, _) = element(value, SEQUENCE)?;
                    self.authority = Some(element(fields, 0x01).is_some_and(|(flag, _)| flag != [0]));
                }
                EXTENDED_KEY_USAGE => {
                    let (mut purposes, _) = element(value, SEQUENCE)?;
                    let mut serves = false;
                    while !purposes.is_empty() {
                        let (purpose, rest) = element(purposes, OID)?;
                        serves |= purpose == SERVER_AUTH;
                        purposes = rest;
                    }
                    self.serves = Some(serves);
                }
                _ => {}
            }
            list = rest;
        }
        Some(())
    }

    /// Returns true if the certificate names itself as its issuer; only such a certificate can be a root.
    pub fn is_self_issued(&self) -> bool {
        self.self_issued
    }

    /// Returns true if `now` is within the certificate's validity dates.
    pub fn is_valid_at(&self, now: UnixTime) -> bool {
        let now_s = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        (self.not_before_s..=self.not_after_s).contains(&now_s)
    }

    /// Returns true if the certificate is allowed to sign others, by OpenSSL's rules for authorities.
    pub fn may_sign(&self) -> bool {
        self.usage.is_none_or(|usage| usage & USAGE_SIGN != 0)
            && self.authority.unwrap_or(self.usage.is_some() || (self.version_1 && self.self_issued))
    }

    /// Returns true if the certificate is allowed to identify a TLS server, by OpenSSL's rules for that purpose.
    pub fn may_serve(&self) -> bool {
        self.serves.unwrap_or(true) && self.usage.is_none_or(|usage| usage & USAGE_TLS != 0)
    }
}

/// Parses a `UTCTime` or `GeneralizedTime`; returns the seconds since the UNIX epoch, and the remaining DER bytes.
fn time(der: &[u8]) -> Option<(i64, &[u8])> {
    let (text, rest, year) = if let Some((text, rest)) = element(der, 0x17) {
        let year = digits(text.get(..2)?)?;
        (text.get(2..)?, rest, if year >= 50 { 1900 + year } else { 2000 + year })
    } else {
        let (text, rest) = element(der, 0x18)?;
        (text.get(4..)?, rest, digits(text.get(..4)?)?)
    };
    if text.len() != 11 || text[10] != b'Z' {
        return None;
    }
    let mut parts = text[..10].chunks_exact(2).map(digits);
    let mut next = || parts.next().flatten();
    let (month, day, hour, minute, second) = (next()?, next()?, next()?, next()?, next()?);
    let days = days_since_epoch(year, month, day);
    Some((((days * 24 + hour) * 60 + minute) * 60 + second, rest))
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

/// Returns the days since 1970-01-01; years are counted from March, so that a leap day comes last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns `tls-server-end-point` of RFC 5929: the hash of the certificate, made with the hash function of its own
/// signature.
///
/// SHA-256 replaces MD5 and SHA-1. `None` if the signature does not name one hash function, as with Ed25519.
pub fn end_point_hash(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA_SHA2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
    let (outer, _) = element(certificate, SEQUENCE)?;
    let (_, after_body) = element(outer, SEQUENCE)?;
    let (algorithm, _) = element(after_body, SEQUENCE)?;
    let (name, parameters) = element(algorithm, OID)?;
    let (&last, family) = name.split_last()?;
    match (family, last) {
        (RSA, 4 | 5 | 11) | (ECDSA_SHA2, 2) => Some(Sha256::digest(certificate).to_vec()),
        (RSA, 12) | (ECDSA_SHA2, 3) => Some(Sha384::digest(certificate).to_vec()),
        (RSA, 13) | (ECDSA_SHA2, 4) => Some(Sha512::digest(certificate).to_vec()),
        (RSA, 10) => pss_hash(parameters, certificate),
        _ if name == ECDSA_SHA1 => Some(Sha256::digest(certificate).to_vec()),
        _ => None,
    }
}

/// Returns the certificate's hash, made with the hash function in the RSASSA-PSS parameters; SHA-256 is used if they
/// name no hash function, or SHA-1.
fn pss_hash(parameters: &[u8], certificate: &[u8]) -> Option<Vec<u8>> {
    const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
    const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];
    let (fields, _) = element(parameters, SEQUENCE)?;
    let Some((hash, _)) = element(fields, 0xa0) else { return Some(Sha256::digest(certificate).to_vec()) };
    let (algorithm, _) = element(hash, SEQUENCE)?;
    let (name, _) = element(algorithm, OID)?;
    let (&last, family) = name.split_last()?;
    match (family, last) {
        (SHA2, 1) => Some(Sha256::digest(certificate).to_vec()),
        (SHA2, 2) => Some(Sha384::digest(certificate).to_vec()),
        (SHA2, 3) => Some(Sha512::digest(certificate).to_vec()),
        _ if name == SHA1 => Some(Sha256::digest(certificate).to_vec()),
        _ => None,
    }
}

/// Splits DER into the contents of its first element, which must have this tag, and the remaining bytes.
pub(crate) fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
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
    use std::time::Duration;

    use proptest::prelude::*;
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};

    use super::*;

    fn facts(change: impl FnOnce(&mut CertificateParams)) -> Facts {
        let mut params = CertificateParams::new(["localhost".into()]).expect("a name");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        Facts::read(params.self_signed(&key).expect("a certificate").der()).expect("reads")
    }

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn dates_are_those_of_the_certificate() {
        let found = facts(|params| {
            params.not_before = rcgen::date_time_ymd(2024, 2, 29);
            params.not_after = rcgen::date_time_ymd(2124, 3, 1);
        });
        // date -u -d 2024-02-29 +%s; date -u -d 2124-03-01 +%s
        assert_eq!((found.not_before_s, found.not_after_s), (1_709_164_800, 4_864_924_800));
        assert!(found.is_valid_at(at(1_709_164_800)) && !found.is_valid_at(at(1_709_164_799)));
        assert!(!found.is_valid_at(at(4_864_924_801)));
    }

    #[test]
    fn who_may_sign_and_who_may_serve_follows_openssl() {
        let plain = facts(|_| ());
        assert!(plain.is_self_issued() && !plain.may_sign() && plain.may_serve());
        let authority = facts(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
        assert!(authority.may_sign() && authority.may_serve());
        let signer = facts(|params| {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        });
        assert!(signer.may_sign() && !signer.may_serve());
        let crls_only = facts(|params| {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::CrlSign];
        });
        assert!(!crls_only.may_sign());
        let client = facts(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
        assert!(!client.may_serve());
        let server = facts(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]);
        assert!(server.may_serve());
    }

    #[test]
    fn the_hash_follows_the_signature_of_the_certificate() {
        for (algorithm, bytes) in [(&rcgen::PKCS_ECDSA_P256_SHA256, 32), (&rcgen::PKCS_ECDSA_P384_SHA384, 48)] {
            let key = KeyPair::generate_for(algorithm).expect("a key");
            let params = CertificateParams::new(["localhost".into()]).expect("a name");
            let certificate = params.self_signed(&key).expect("a certificate");
            let hash = end_point_hash(certificate.der()).expect("a hash");
            assert_eq!(hash.len(), bytes);
        }
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
        let params = CertificateParams::new(["localhost".into()]).expect("a name");
        assert_eq!(end_point_hash(params.self_signed(&key).expect("a certificate").der()), None);
    }

    #[test]
    fn what_is_no_certificate_has_neither_hash_nor_facts() {
        for bytes in [&[][..], &[0x30], &[0x30, 0x80], &[0x30, 0x85, 1, 1, 1, 1, 1], &[0x30, 2, 0x30]] {
            assert_eq!(end_point_hash(bytes), None);
            assert_eq!(Facts::read(bytes), None);
        }
    }

    proptest! {
        #[test]
        fn a_mutilated_certificate_never_panics(at in 0_usize..400, value: u8, cut in 0_usize..400) {
            let key = KeyPair::generate().expect("a key");
            let params = CertificateParams::new(["localhost".into()]).expect("a name");
            let mut der = params.self_signed(&key).expect("a certificate").der().to_vec();
            if let Some(byte) = der.get_mut(at) {
                *byte = value;
            }
            der.truncate(der.len().saturating_sub(cut));
            let _ = (Facts::read(&der), end_point_hash(&der));
        }
    }
}
