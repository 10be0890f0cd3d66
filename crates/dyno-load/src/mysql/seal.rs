//! Password encryption with a server's RSA key, for `caching_sha2_password` without TLS.
//!
//! The scheme is RSAES-OAEP with SHA-1 and MGF1 (RFC 8017, 7.1.1), applied to the password masked by the challenge.
//!
//! The user must provide the key. A key received over the connection is never used: a man in the middle would send his
//! own key and read the password. Only the public half of a key is used here.

use num_bigint::BigUint;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

use crate::wire::WireError;
use crate::wire::x509::element;

const HASH_BYTES: usize = 20;
/// Smallest accepted key length [bits]; shorter keys can be broken.
const KEY_BITS_MIN: u64 = 2048;
const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
const INTEGER: u8 = 0x02;

/// Public half of an RSA key.
#[derive(Debug, Clone)]
pub struct PublicKey {
    modulus: BigUint,
    exponent: BigUint,
}

impl PublicKey {
    /// Reads a key from a PEM file (`BEGIN PUBLIC KEY`), as servers write it.
    ///
    /// # Errors
    /// Returns a message if the file contains no such key, or a key shorter than 2048 bits.
    pub fn from_pem(pem: &[u8]) -> Result<Self, &'static str> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| "no PEM file of a public key")?;
        let key = Self::from_der(&der).ok_or("no RSA key")?;
        if key.modulus.bits() < KEY_BITS_MIN {
            return Err("an RSA key shorter than 2048 bits");
        }
        Ok(key)
    }

    fn from_der(der: &[u8]) -> Option<Self> {
        let (info, _) = element(der, SEQUENCE)?;
        let (_algorithm, rest) = element(info, SEQUENCE)?;
        let (bits, _) = element(rest, BIT_STRING)?;
        let (numbers, _) = element(bits.strip_prefix(&[0])?, SEQUENCE)?;
        let (modulus, rest) = element(numbers, INTEGER)?;
        let (exponent, _) = element(rest, INTEGER)?;
        Some(Self { modulus: BigUint::from_bytes_be(modulus), exponent: BigUint::from_bytes_be(exponent) })
    }

    /// Returns the zero-terminated password, masked by the challenge and encrypted for the owner of this key.
    ///
    /// # Errors
    /// The password is too long for the key, or the system provides no random numbers.
    pub fn seal(&self, password: &[u8], challenge: &[u8]) -> Result<Vec<u8>, WireError> {
        let ended = password.iter().chain(&[0]);
        let masked: Vec<u8> = ended.zip(challenge.iter().cycle()).map(|(a, b)| a ^ b).collect();
        let mut seed = [0; HASH_BYTES];
        SystemRandom::new().fill(&mut seed).map_err(|_| WireError::Auth("no random numbers".into()))?;
        let block =
            padded(&masked, seed, self.bytes()).ok_or_else(|| WireError::Auth("the password is too long".into()))?;
        let sealed = BigUint::from_bytes_be(&block).modpow(&self.exponent, &self.modulus).to_bytes_be();
        Ok([vec![0; self.bytes() - sealed.len()], sealed].concat())
    }

    fn bytes(&self) -> usize {
        self.modulus.bits().div_ceil(8) as usize
    }
}

/// Returns the padded block of `length` bytes, or `None` if the message is too long for it.
fn padded(message: &[u8], mut seed: [u8; HASH_BYTES], length: usize) -> Option<Vec<u8>> {
    let room = length.checked_sub(2 * HASH_BYTES + 2 + message.len())?;
    let label = digest(&SHA1_FOR_LEGACY_USE_ONLY, b"");
    let mut data = [label.as_ref(), &vec![0; room], &[1], message].concat();
    mask(&mut data, &seed);
    mask(&mut seed, &data);
    Some([&[0][..], &seed, &data].concat())
}

/// Applies MGF1: xors `bytes` with the SHA-1 hashes of the seed and a counter.
fn mask(bytes: &mut [u8], seed: &[u8]) {
    for (counter, chunk) in (0_u32..).zip(bytes.chunks_mut(HASH_BYTES)) {
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[seed, &counter.to_be_bytes()].concat());
        chunk.iter_mut().zip(hash.as_ref()).for_each(|(byte, own)| *byte ^= own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_does_not_fit_is_refused_and_what_is_no_key_has_a_reason() {
        assert!(padded(&[0; 214], [7; HASH_BYTES], 256).is_some_and(|block| block.len() == 256));
        assert_eq!(padded(&[0; 215], [7; HASH_BYTES], 256), None);
        assert_eq!(PublicKey::from_pem(b"-----").expect_err("is none"), "no PEM file of a public key");
        let empty = b"-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----\n";
        assert_eq!(PublicKey::from_pem(empty).expect_err("is none"), "no RSA key");
    }
}
