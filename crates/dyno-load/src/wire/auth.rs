//! Authentication at a PostgreSQL server, in both directions.
//!
//! Methods: trust, password, md5, SCRAM-SHA-256, and SCRAM-SHA-256-PLUS over TLS. Before the client answers a request
//! of the server, it checks that the user allows that method:
//!
//! - `require_auth`: the methods that the server is allowed to use; by default all.
//! - `channel_binding=require`: only SCRAM-SHA-256-PLUS.
//!
//! Stricter than libpq: the password is sent in clear text only under TLS or with `require_auth=password`, and only one
//! authentication request is answered.

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding as Binding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::frontend;

use super::WireError;
use super::startup::Handshake;
use crate::connection::{ChannelBinding, Method, Password};

const DONE: u32 = 0;
const CLEARTEXT: u32 = 3;
const MD5: u32 = 5;
const SASL: u32 = 10;

/// What has happened so far: whether the client has answered, and whether the login is bound to the server's
/// certificate.
#[derive(Debug, Default)]
struct Proved {
    answered: bool,
    bound: bool,
}

impl Handshake<'_> {
    /// Answers the server's authentication requests until the server accepts the login.
    pub(super) fn authenticate(&mut self) -> Result<(), WireError> {
        let mut proved = Proved::default();
        loop {
            let (kind, data) = self.question()?;
            self.permit(kind, &proved)?;
            match kind {
                DONE => return Ok(()),
                CLEARTEXT => self.answer(frontend::password_message)?,
                MD5 => self.md5(&data)?,
                SASL => proved.bound = self.scram(&data)?,
                other => return Err(WireError::Auth(format!("{}, which is not supported", asked(other)))),
            }
            proved.answered = true;
        }
    }

    /// Checks that the user allows this authentication request, or allows authentication to end at this point.
    fn permit(&self, kind: u32, proved: &Proved) -> Result<(), WireError> {
        let spec = self.spec;
        if proved.answered && kind != DONE {
            return Err(WireError::Auth(format!("{} although it had its answer", asked(kind))));
        }
        let allowed = match method(kind) {
            Some(Method::None) => proved.answered || spec.require_auth.allows(Method::None),
            Some(method) => spec.require_auth.allows(method),
            None => true, // not supported: refused anyway
        };
        if !allowed {
            return Err(WireError::Auth(format!(
                "{}; require_auth={} does not allow it",
                asked(kind),
                spec.require_auth
            )));
        }
        if spec.channel_binding == ChannelBinding::Require && kind != SASL && !proved.bound {
            let words = format!("{}; channel_binding=require allows SCRAM-SHA-256-PLUS only", asked(kind));
            return Err(WireError::Auth(words));
        }
        let exposed = !self.socket.is_encrypted() && !spec.is_unix();
        if kind == CLEARTEXT && exposed && !spec.require_auth.names(Method::Password) {
            let words = format!("{}, and the connection is not encrypted", asked(kind));
            return Err(WireError::Exposed(words));
        }
        Ok(())
    }

    fn question(&mut self) -> Result<(u32, Vec<u8>), WireError> {
        match self.receive()? {
            (b'R', body) if body.len() >= 4 => {
                let kind = u32::from_be_bytes([body[0], body[1], body[2], body[3]]);
                Ok((kind, body[4..].to_vec()))
            }
            (tag, _) => Err(WireError::Protocol(format!("message {:?} during authentication", char::from(tag)))),
        }
    }

    fn password(&self) -> Result<&[u8], WireError> {
        let password = self.spec.password.as_ref().map(Password::reveal);
        password.filter(|password| !password.is_empty()).ok_or(WireError::NoPassword)
    }

    fn answer(&mut self, encode: impl FnOnce(&[u8], &mut BytesMut) -> std::io::Result<()>) -> Result<(), WireError> {
        let mut out = BytesMut::new();
        encode(self.password()?, &mut out)?;
        self.out = out;
        self.send()
    }

    fn md5(&mut self, salt: &[u8]) -> Result<(), WireError> {
        let salt = *salt.first_chunk::<4>().ok_or_else(|| WireError::Protocol("md5 without salt".into()))?;
        let user = self.spec.user.clone();
        self.answer(|password, out| {
            let hash = md5_hash(user.as_bytes(), password, salt);
            frontend::password_message(hash.as_bytes(), out)
        })
    }

    /// Runs SCRAM; returns true if the login is bound to the server's certificate.
    fn scram(&mut self, mechanisms: &[u8]) -> Result<bool, WireError> {
        let (mechanism, binding) = self.mechanism(mechanisms)?;
        let failed = |e: std::io::Error| WireError::Auth(format!("SCRAM: {e}"));
        let mut scram = ScramSha256::new(self.password()?, binding);
        frontend::sasl_initial_response(mechanism, scram.message(), &mut self.out)?;
        self.send()?;
        scram.update(&self.expect(11)?).map_err(failed)?;
        frontend::sasl_response(scram.message(), &mut self.out)?;
        self.send()?;
        scram.finish(&self.expect(12)?).map_err(failed)?;
        Ok(mechanism == SCRAM_SHA_256_PLUS)
    }

    fn mechanism(&self, offered: &[u8]) -> Result<(&'static str, Binding), WireError> {
        let offers = |name: &str| offered.split(|&b| b == 0).any(|m| m == name.as_bytes());
        let wish = self.spec.channel_binding;
        let certificate = self.socket.certificate();
        if offers(SCRAM_SHA_256_PLUS) && certificate.is_none() {
            // As libpq: a man in the middle has removed the encryption.
            return Err(WireError::Auth("the server offers SCRAM-SHA-256-PLUS on an unencrypted connection".into()));
        }
        if offers(SCRAM_SHA_256_PLUS) && wish != ChannelBinding::Disable {
            let hash = self.socket.end_point_hash().ok_or_else(|| {
                let words = "the server offers SCRAM-SHA-256-PLUS with a certificate whose signature names no hash";
                WireError::Auth(format!("{words} (such as Ed25519), so that the login cannot be bound to it"))
            })?;
            return Ok((SCRAM_SHA_256_PLUS, Binding::tls_server_end_point(hash)));
        }
        if wish == ChannelBinding::Require {
            return Err(WireError::Auth("channel_binding=require, and the server offers no SCRAM-SHA-256-PLUS".into()));
        }
        if !offers(SCRAM_SHA_256) {
            let offered = String::from_utf8_lossy(offered).replace('\0', " ");
            return Err(WireError::Auth(format!("the server offers SASL {} only", offered.trim())));
        }
        // The client states that it could bind. A server that did offer binding then knows that the offer was removed.
        let could = certificate.is_some() && wish != ChannelBinding::Disable;
        Ok((SCRAM_SHA_256, if could { Binding::unrequested() } else { Binding::unsupported() }))
    }

    fn expect(&mut self, kind: u32) -> Result<Vec<u8>, WireError> {
        match self.question()? {
            (found, data) if found == kind => Ok(data),
            (found, _) => Err(WireError::Auth(format!("SCRAM: step {found} instead of {kind}"))),
        }
    }
}

fn method(kind: u32) -> Option<Method> {
    Some(match kind {
        DONE => Method::None,
        CLEARTEXT => Method::Password,
        MD5 => Method::Md5,
        7 | 8 => Method::Gss,
        9 => Method::Sspi,
        SASL => Method::Scram,
        _ => return None,
    })
}

fn asked(kind: u32) -> String {
    let name = match kind {
        DONE => return "the server let us in without asking".into(),
        2 => "Kerberos V5",
        CLEARTEXT => "the password in the clear",
        MD5 => "an MD5 hash of the password",
        6 => "SCM credential",
        7 | 8 => "GSSAPI",
        9 => "SSPI",
        SASL => "SASL",
        _ => return format!("the server asks for method {kind}"),
    };
    format!("the server asks for {name}")
}
