//! Messages before a session: packets without a tag, and the server's offer of login methods.

use crate::framing::text;

/// Longest first packet that the server accepts [bytes].
const LONGEST: usize = 10_000;
const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// First packet of a client, or a request before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// More bytes are needed.
    Unfinished,
    /// TLS begins immediately.
    DirectTls,
    /// Request for TLS, with the packet's length [bytes].
    AsksTls(usize),
    /// Request for GSSAPI encryption, with the packet's length [bytes].
    AsksGss(usize),
    /// Request to cancel what another session does, with the packet's length [bytes].
    Cancel(usize),
    /// A session begins.
    Startup {
        /// Length of the packet [bytes].
        length: usize,
        /// Name of the user.
        user: String,
        /// Database; by default it has the user's name.
        database: String,
        /// Application name.
        application: String,
    },
    /// Bytes that are not of this protocol, with the reason.
    Rubbish(String),
}

/// Parses the first bytes of a client.
pub fn opening(bytes: &[u8]) -> Opening {
    if bytes.first() == Some(&0x16) {
        return Opening::DirectTls;
    }
    let Some(head) = bytes.get(..8) else { return Opening::Unfinished };
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (length, code) = (word(0) as usize, word(4));
    if !(8..=LONGEST).contains(&length) {
        return Opening::Rubbish(format!("its first packet says that it has {length} bytes"));
    }
    if bytes.len() < length {
        return Opening::Unfinished;
    }
    match code {
        SSL => Opening::AsksTls(length),
        GSS => Opening::AsksGss(length),
        CANCEL => Opening::Cancel(length),
        _ if code >> 16 == 3 => startup(length, &bytes[8..length]),
        _ => Opening::Rubbish(format!("it speaks version {}.{} of the protocol", code >> 16, code & 0xffff)),
    }
}

fn startup(length: usize, mut pairs: &[u8]) -> Opening {
    let (mut user, mut database, mut application) = (String::new(), String::new(), String::new());
    while pairs.first().is_some_and(|byte| *byte != 0) {
        let (key, rest) = text(pairs);
        let (value, rest) = text(rest);
        let value = || String::from_utf8_lossy(value).into_owned();
        match key {
            b"user" => user = value(),
            b"database" => database = value(),
            b"application_name" => application = value(),
            _ => {}
        }
        pairs = rest;
    }
    if database.is_empty() {
        database.clone_from(&user);
    }
    Opening::Startup { length, user, database, application }
}

/// Returns the server's SASL offer without methods that use channel binding; `None` if nothing has to be removed.
///
/// A client without TLS refuses an offer of channel binding, but the server, to which the proxy connects with TLS,
/// makes one.
pub fn without_channel_binding(tag: u8, body: &[u8]) -> Option<Vec<u8>> {
    const SASL: [u8; 4] = [0, 0, 0, 10];
    if tag != b'R' || !body.starts_with(&SASL) {
        return None;
    }
    let mut kept = SASL.to_vec();
    let (mut rest, mut is_less) = (&body[4..], false);
    while rest.first().is_some_and(|byte| *byte != 0) {
        let (name, behind) = text(rest);
        if name.ends_with(b"-PLUS") {
            is_less = true;
        } else {
            kept.extend_from_slice(name);
            kept.push(0);
        }
        rest = behind;
    }
    kept.push(0);
    is_less.then(|| message(tag, &kept))
}

/// Returns a message with this tag and body.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// Returns an error of the proxy in the form of a server's error message.
pub fn refusal(state: &str, words: &str) -> Vec<u8> {
    let fields = format!("SFATAL\0VFATAL\0C{state}\0Mdbdyno trace proxy: {words}\0\0");
    message(b'E', fields.as_bytes())
}
