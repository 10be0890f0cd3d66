//! First packet of the server (greeting), and the client's answer to it.

use super::packet::{Reader, write_text};
use crate::connection::ConnectionSpec;
use crate::wire::WireError;

/// Capability bits of client and server.
pub mod can {
    pub const MYSQL: u64 = 1;
    pub const FOUND_ROWS: u64 = 1 << 1;
    pub const LONG_FLAG: u64 = 1 << 2;
    pub const CONNECT_WITH_DB: u64 = 1 << 3;
    /// `LOAD DATA LOCAL`: the server may ask the client for data.
    pub const LOCAL_FILES: u64 = 1 << 7;
    pub const PROTOCOL_41: u64 = 1 << 9;
    pub const TLS: u64 = 1 << 11;
    pub const TRANSACTIONS: u64 = 1 << 13;
    pub const SECURE_CONNECTION: u64 = 1 << 15;
    pub const MULTI_STATEMENTS: u64 = 1 << 16;
    pub const MULTI_RESULTS: u64 = 1 << 17;
    pub const PS_MULTI_RESULTS: u64 = 1 << 18;
    pub const PLUGIN_AUTH: u64 = 1 << 19;
    pub const CONNECT_ATTRS: u64 = 1 << 20;
    pub const DEPRECATE_EOF: u64 = 1 << 24;
    /// MariaDB only: in results of prepared statements the server omits column descriptions that the client already
    /// knows.
    pub const CACHE_METADATA: u64 = 1 << 36;
}

/// Number of the collation `utf8mb4_general_ci`.
const CHARSET: u8 = 45;
/// Largest packet that the client accepts [bytes].
const PACKET_BYTES_MAX: u32 = 1 << 30;
const VERSION: u64 = 10;

/// First packet of the server.
#[derive(Debug)]
pub struct Greeting {
    /// Server version, as text.
    pub version: String,
    /// Session number, for `KILL`.
    pub session: u32,
    /// Capability bits of the server.
    pub can: u64,
    /// Challenge from which the proof of the password is computed.
    pub challenge: Vec<u8>,
    /// Authentication method that the server proposes.
    pub plugin: String,
}

impl Greeting {
    /// Parses the body of the first packet.
    ///
    /// # Errors
    /// The packet is too short, or the protocol version is not 10.
    pub fn parse(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Reader(body);
        let version = body.number(1)?;
        if version != VERSION {
            return Err(WireError::Protocol(format!("protocol version {version}")));
        }
        let words = String::from_utf8_lossy(body.up_to_zero()).into_owned();
        let session = body.number(4)? as u32;
        let mut challenge = body.take(8)?.to_vec();
        body.take(1)?;
        let lower = body.number(2)?;
        body.take(3)?; // character set and status
        let upper = body.number(2)?;
        let length = body.number(1)? as usize;
        body.take(6)?;
        let own = body.number(4)?;
        let mut can = upper << 16 | lower;
        if can & can::MYSQL == 0 {
            can |= own << 32;
        }
        let rest = length.saturating_sub(8).max(13);
        challenge.extend_from_slice(body.take(rest.min(body.0.len()))?);
        if challenge.last() == Some(&0) {
            challenge.pop();
        }
        let plugin = String::from_utf8_lossy(body.up_to_zero()).into_owned();
        Ok(Self { version: words, session, can, challenge, plugin })
    }

    /// Returns the capabilities to use with this server.
    ///
    /// `encrypted` is true if TLS is used; `feeds` is true if there is data for `LOAD DATA LOCAL`.
    ///
    /// # Errors
    /// The server is older than version 10.2.
    pub fn agreed(&self, spec: &ConnectionSpec, encrypted: bool, feeds: bool) -> Result<u64, WireError> {
        let needed = can::PROTOCOL_41 | can::SECURE_CONNECTION | can::PLUGIN_AUTH | can::DEPRECATE_EOF;
        if self.can & needed != needed {
            let version: String = self.version.chars().filter(char::is_ascii_graphic).take(40).collect();
            return Err(WireError::Protocol(format!(
                "server version {version:?} is too old (10.2 or later is needed)"
            )));
        }
        let wished = can::FOUND_ROWS
            | can::LONG_FLAG
            | can::TRANSACTIONS
            | can::MULTI_STATEMENTS
            | can::MULTI_RESULTS
            | can::PS_MULTI_RESULTS
            | can::CONNECT_ATTRS
            | can::CACHE_METADATA;
        let database = if spec.dbname.is_empty() { 0 } else { can::CONNECT_WITH_DB };
        let tls = if encrypted { can::TLS } else { 0 };
        let local = if feeds { can::LOCAL_FILES } else { 0 };
        Ok(needed | (wished | local) & self.can | database | tls)
    }
}

/// Appends the head of the client's answer; if only the head is sent, it is the request for TLS.
pub fn write_head(agreed: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&(agreed as u32).to_le_bytes());
    out.extend_from_slice(&PACKET_BYTES_MAX.to_le_bytes());
    out.push(CHARSET);
    out.extend_from_slice(&[0; 19]);
    out.extend_from_slice(&((agreed >> 32) as u32).to_le_bytes());
}

/// Appends the client's answer: user, proof, database, plugin and attributes.
pub fn write_login(spec: &ConnectionSpec, agreed: u64, plugin: &str, proof: &[u8], out: &mut Vec<u8>) {
    let zero_ended = |text: &str, out: &mut Vec<u8>| {
        out.extend(text.bytes().filter(|&byte| byte != 0));
        out.push(0);
    };
    write_head(agreed, out);
    zero_ended(&spec.user, out);
    out.push(proof.len() as u8);
    out.extend_from_slice(proof);
    if agreed & can::CONNECT_WITH_DB != 0 {
        zero_ended(&spec.dbname, out);
    }
    zero_ended(plugin, out);
    if agreed & can::CONNECT_ATTRS != 0 {
        let mut attributes = Vec::new();
        for (name, value) in [("_client_name", "dbdyno"), ("program_name", spec.application_name.as_str())] {
            write_text(name.as_bytes(), &mut attributes);
            write_text(value.as_bytes(), &mut attributes);
        }
        write_text(&attributes, out);
    }
}
