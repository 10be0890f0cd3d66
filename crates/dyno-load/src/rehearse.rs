//! A server made of bytes, for fuzzing: a login and two commands against whatever it says.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::connection::ConnectionSpec;
use crate::reactor::{Pulse, finish};
use crate::wire::link::Event;
use crate::wire::message::{column_names, columns};
use crate::wire::socket::Socket;
use crate::wire::startup::Dialler;
use crate::wire::stream::{Patience, Stream, Wire};

/// More than this does not fit into a socket without a reader.
const BYTES_MAX: usize = 64 << 10;

/// Lets the client talk to a server that says these bytes and ends. Whatever they are, it returns.
pub fn rehearse(bytes: &[u8]) {
    let Ok((ours, mut theirs)) = UnixStream::pair() else { return };
    let said = theirs.write_all(&bytes[..bytes.len().min(BYTES_MAX)]);
    if said.is_err() || theirs.shutdown(Shutdown::Write).is_err() || ours.set_nonblocking(true).is_err() {
        return;
    }
    let spec = r#"{"host": "/rehearsal", "user": "u", "dbname": "d", "password": "p"}"#;
    let Ok(dialler) = serde_json::from_str::<ConnectionSpec>(spec).map(|spec| Dialler::new(&spec)) else { return };
    let stop: Arc<AtomicBool> = Arc::default();
    let patience = Patience::new(Some(Duration::from_secs(5)), &stop);
    let socket = Socket::Plain(Wire::new(Stream::Unix(ours), patience, Arc::default()));
    let Some(mut link) = dialler.ok().and_then(|dialler| dialler.log_in(socket, &stop).ok()) else { return };
    link.capture.on = true;
    let _ = finish(link.run("select 1", &Pulse::blocking()));
    let _ = columns(&link.capture.row).count();
    let _ = column_names(&link.capture.description);
    // To the end of the bytes, which is an error.
    while let Some(Ok(event)) = finish(link.event(&Pulse::blocking())) {
        if let Event::Failed(error) = event {
            let _ = error.words("select 1");
        }
    }
}

/// What an honest server says, by method of login: where fuzzing begins.
pub fn seeds() -> Vec<Vec<u8>> {
    let frame = |tag: u8, body: &[u8]| {
        let mut out = vec![tag];
        out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        out.extend_from_slice(body);
        out
    };
    let question = |kind: u32, data: &[u8]| frame(b'R', &[&kind.to_be_bytes()[..], data].concat());
    let after = [
        question(0, b""),
        frame(b'S', b"server_version\x0015.4\0"),
        frame(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]),
        frame(b'Z', b"I"),
        frame(b'T', &[&[0, 1][..], b"v\0", &[0; 18]].concat()),
        frame(b'D', &[0, 1, 0, 0, 0, 1, b'7']),
        frame(b'N', b"SNOTICE\0C00000\0Mhello\0\0"),
        frame(b'C', b"SELECT 1\0"),
        frame(b'E', b"SERROR\0VERROR\0C23505\0Mduplicate key \"k\"\0nk\0\0"),
        frame(b'Z', b"E"),
    ]
    .concat();
    let asked = [question(5, b"salt"), question(3, b""), question(10, b"SCRAM-SHA-256\0\0"), Vec::new()];
    asked.into_iter().map(|asked| [asked, after.clone()].concat()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn honest_servers_are_listened_to_the_end() {
        for seed in seeds() {
            rehearse(&seed);
        }
    }

    proptest! {
        #[test]
        fn a_server_that_lies_never_makes_the_client_panic_or_hang(
            seed in 0_usize..4,
            changes in prop::collection::vec((0_usize..400, any::<u8>()), 0..8),
            cut in 0_usize..400,
        ) {
            let mut bytes = seeds()[seed].clone();
            for (at, value) in changes {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            rehearse(&bytes);
        }
    }
}
