//! Beginning of a pair: the client's first packet, the connection to the server, TLS on both sides.

use std::io;

use super::{Pair, Stage, Turn};
use crate::follow::Follower;
use crate::now_ns;
use crate::opening::{self, Opening, opening};
use crate::shared::BROKEN;

impl Pair {
    /// Reads the client's first packet.
    pub(super) fn open(&mut self, turn: &mut Turn<'_>) -> io::Result<()> {
        self.client.flush()?;
        loop {
            if !self.inbox.is_empty() {
                self.take_opening(turn)?;
            }
            if self.stage != Stage::Opening || !self.client.may_read {
                return Ok(());
            }
            // A first packet is short.
            match self.client.read(&mut turn.buffer[..4096]) {
                Ok(0) => return Ok(()),
                Ok(count) => self.inbox.extend_from_slice(&turn.buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    turn.counts.tls_refused += u64::from(error.kind() == io::ErrorKind::InvalidData);
                    return Err(error);
                }
            }
        }
    }

    pub(super) fn take_opening(&mut self, turn: &mut Turn<'_>) -> io::Result<()> {
        loop {
            match opening(&self.inbox) {
                Opening::Unfinished => return Ok(()),
                Opening::DirectTls if turn.tls.is_offered() && !self.client.is_encrypted() => {
                    self.client.encrypt(turn.tls.with_client());
                    let bytes = std::mem::take(&mut self.inbox);
                    self.client.give_back(&bytes)?;
                    return self.client.flush();
                }
                Opening::DirectTls => {
                    return self.refuse("TLS is not offered here: start the proxy with --tls-cert and --tls-key", turn);
                }
                Opening::AsksTls(length) | Opening::AsksGss(length) => {
                    let is_tls = matches!(opening(&self.inbox), Opening::AsksTls(_));
                    self.inbox.drain(..length);
                    let takes = is_tls && turn.tls.is_offered() && !self.client.is_encrypted();
                    if takes && !self.inbox.is_empty() {
                        // Unencrypted bytes after the request were inserted by somebody else.
                        return self.refuse("unencrypted bytes behind the request for TLS", turn);
                    }
                    self.client.send(if takes { b"S" } else { b"N" })?;
                    if takes {
                        self.client.encrypt(turn.tls.with_client());
                    }
                    if self.inbox.is_empty() {
                        return Ok(());
                    }
                }
                Opening::Cancel(_) => {
                    turn.counts.cancels += 1;
                    return self.call_server(turn);
                }
                Opening::Startup { user, database, application, .. } => {
                    let mut follower = Follower::new(turn.shared.take_number(), self.since_ns);
                    (follower.row.user, follower.row.database) = (user, database);
                    follower.application = application;
                    self.follower = Some(Box::new(follower));
                    return self.call_server(turn);
                }
                Opening::Rubbish(why) => return self.refuse(&why, turn),
            }
        }
    }

    /// Sends the client the reason and closes its connection.
    pub(super) fn refuse(&mut self, why: &str, turn: &mut Turn<'_>) -> io::Result<()> {
        turn.counts.rubbish += 1;
        turn.counts.last = format!("{}: {why}", self.peer);
        self.stage = Stage::Closing;
        self.client.send(&opening::refusal("08P01", why))
    }

    pub(super) fn call_server(&mut self, turn: &mut Turn<'_>) -> io::Result<()> {
        match (turn.dial)(self.server_token, turn.registry) {
            Ok(server) => {
                self.server = Some(server);
                self.stage = Stage::Asking;
                Ok(())
            }
            Err(error) => self.unreachable(&error, turn),
        }
    }

    pub(super) fn unreachable(&mut self, error: &io::Error, turn: &mut Turn<'_>) -> io::Result<()> {
        turn.counts.unreachable += 1;
        turn.counts.last = format!("the server cannot be reached: {error}");
        self.stage = Stage::Closing;
        self.finish(0, Some(BROKEN), turn.shared);
        self.client.send(&opening::refusal("08006", &format!("the server cannot be reached: {error}")))
    }

    /// Waits until the server is connected, negotiates TLS with it, and sends the first packet.
    pub(super) fn ask(&mut self, turn: &mut Turn<'_>) -> io::Result<()> {
        let Some(server) = &mut self.server else { return Ok(()) };
        if let Some(error) = server.net().failure() {
            return self.unreachable(&error, turn);
        }
        if !server.net().is_connected() {
            return Ok(());
        }
        server.is_connecting = false;
        let asks = turn.tls.is_wanted() && !server.is_encrypted();
        if asks {
            const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
            if self.held.is_none() {
                self.held = Some(Vec::new());
                server.send(&SSL_REQUEST)?;
            }
            server.flush()?;
            let mut answer = [0];
            match server.read(&mut answer) {
                Ok(1) if answer[0] == b'S' => server.encrypt(turn.tls.with_server()),
                Ok(1) if answer[0] == b'N' && turn.tls.is_optional => {}
                Ok(_) => {
                    let error =
                        io::Error::new(io::ErrorKind::ConnectionRefused, "it has no TLS, and --server-tls asks for it");
                    return self.unreachable(&error, turn);
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) => {
                    return Ok(());
                }
                Err(error) => return self.unreachable(&error, turn),
            }
        }
        self.held = (server.is_encrypted() && !self.client.is_encrypted()).then(Vec::new);
        let first = std::mem::take(&mut self.inbox);
        let packet = match opening(&first) {
            Opening::Startup { length, .. } | Opening::Cancel(length) => length,
            _ => first.len(),
        };
        server.send(&first)?;
        self.stage = Stage::Passing;
        if let Some(follower) = &mut self.follower {
            // A client may send more immediately; those bytes are messages to follow.
            let _ =
                self.of_client.feed(&first[packet..], |_| 0, |message| follower.client(now_ns(), message, turn.shared));
        }
        Ok(())
    }
}

/// Removes complete login messages from `held` and returns them, with channel binding removed from the server's offer.
pub(super) fn let_through(held: &mut Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(head) = held.get(at..at + 5) {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some(message) = held.get(at..at + 1 + length.max(4)) else { break };
        match opening::without_channel_binding(message[0], &message[5..]) {
            Some(less) => out.extend_from_slice(&less),
            None => out.extend_from_slice(message),
        }
        at += message.len();
    }
    held.drain(..at);
    out
}
