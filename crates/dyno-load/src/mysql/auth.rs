//! Authentication methods of MariaDB. The password itself is sent only where nobody else can read it.
//!
//! | plugin | what is sent |
//! |---|---|
//! | `mysql_native_password` | a proof by SHA-1 over the server's challenge |
//! | `client_ed25519` | the challenge, signed |
//! | `caching_sha2_password` | a proof by SHA-256; if the server asks for it, the password: under TLS, over a Unix socket, or encrypted with a public key that the user has provided |
//! | `unix_socket`, `auth_gssapi_client` and others | `unix_socket`: nothing, the server learns the client's user from the kernel; others are refused |

use curve25519_dalek::EdwardsPoint;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512, digest};

use crate::wire::WireError;

/// Authentication method of a server that does not name one.
pub const NATIVE: &str = "mysql_native_password";
const ED25519: &str = "client_ed25519";
pub const CACHING_SHA2: &str = "caching_sha2_password";
const UNIX_SOCKET: &str = "unix_socket";

/// Length of the challenge of all methods except ed25519 [bytes].
const CHALLENGE_BYTES: usize = 20;

/// Returns the answer to a plugin's challenge.
///
/// # Errors
/// The plugin is not supported, or the challenge is too short.
pub fn answer(plugin: &str, password: Option<&[u8]>, challenge: &[u8]) -> Result<Vec<u8>, WireError> {
    if plugin == UNIX_SOCKET {
        return Ok(Vec::new());
    }
    let secret = password.unwrap_or_default();
    match plugin {
        NATIVE | CACHING_SHA2 if secret.is_empty() => Ok(Vec::new()),
        NATIVE => short(challenge).map(|challenge| native(secret, challenge)),
        CACHING_SHA2 => short(challenge).map(|challenge| sha2(secret, challenge)),
        ED25519 => Ok(signed(secret, challenge)),
        other => Err(WireError::Auth(format!("the server asks for {:?}, which is not supported", shown(other)))),
    }
}

pub fn short(challenge: &[u8]) -> Result<&[u8], WireError> {
    challenge.get(..CHALLENGE_BYTES).ok_or_else(|| WireError::Protocol("a challenge that is too short".into()))
}

/// Returns a server's text in a form that fits into a message: printable, at most 40 characters.
fn shown(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(40).collect()
}

/// Returns SHA1(password) xor SHA1(challenge, SHA1(SHA1(password))).
fn native(password: &[u8], challenge: &[u8]) -> Vec<u8> {
    let sha1 = |bytes: &[u8]| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
    let once = sha1(password);
    let mask = sha1(&[challenge, sha1(once.as_ref()).as_ref()].concat());
    once.as_ref().iter().zip(mask.as_ref()).map(|(a, b)| a ^ b).collect()
}

/// Returns SHA256(password) xor SHA256(SHA256(SHA256(password)), challenge).
fn sha2(password: &[u8], challenge: &[u8]) -> Vec<u8> {
    let sha256 = |bytes: &[u8]| digest(&SHA256, bytes);
    let once = sha256(password);
    let mask = sha256(&[sha256(once.as_ref()).as_ref(), challenge].concat());
    once.as_ref().iter().zip(mask.as_ref()).map(|(a, b)| a ^ b).collect()
}

/// Returns the challenge signed with Ed25519 (RFC 8032, section 5.1.6).
///
/// MariaDB deviates from the RFC in the seed: it is the password itself, of any length.
#[must_use]
pub fn signed(password: &[u8], challenge: &[u8]) -> Vec<u8> {
    let expanded = digest(&SHA512, password);
    let (left, right) = expanded.as_ref().split_at(32);
    let mut key = [0; 32];
    key.copy_from_slice(left);
    let key = Scalar::from_bytes_mod_order(clamp_integer(key));
    let nonce = wide(&[right, challenge]);
    let commitment = EdwardsPoint::mul_base(&nonce).compress();
    let public = EdwardsPoint::mul_base(&key).compress();
    let question = wide(&[commitment.as_bytes(), public.as_bytes(), challenge]);
    let proof = nonce + question * key;
    [*commitment.as_bytes(), proof.to_bytes()].concat()
}

/// Returns the SHA-512 hash of the concatenated parts, as a scalar.
fn wide(parts: &[&[u8]]) -> Scalar {
    let mut bytes = [0; 64];
    bytes.copy_from_slice(digest(&SHA512, &parts.concat()).as_ref());
    Scalar::from_bytes_mod_order_wide(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ED25519 as VERIFY, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

    #[test]
    fn a_password_of_32_bytes_signs_as_the_standard_does() {
        let seed = *b"thirty-two bytes of one password";
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("a seed");
        let challenge = [7; 32];
        let signature = signed(&seed, &challenge);
        assert_eq!(signature, pair.sign(&challenge).as_ref());
        let key = UnparsedPublicKey::new(&VERIFY, pair.public_key().as_ref().to_vec());
        key.verify(&challenge, &signature).expect("verifies");
    }

    #[test]
    fn no_password_is_no_proof_and_an_unknown_plugin_is_named() {
        assert_eq!(answer(NATIVE, None, &[1; 20]).expect("answers"), b"");
        assert_eq!(answer(NATIVE, Some(b"p"), &[1; 20]).expect("answers").len(), 20);
        assert_eq!(answer(CACHING_SHA2, Some(b"p"), &[1; 20]).expect("answers").len(), 32);
        let refused = answer("mysql_clear_password", Some(b"secret"), &[]).expect_err("is refused").to_string();
        assert!(refused.contains("mysql_clear_password") && !refused.contains("\"secret"), "{refused}");
    }
}
