//! Fuzzing of the client: a login and two commands against a server whose answers are arbitrary bytes.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_script::{Command, Compiler, Scope, Value};

use crate::connection::{ConnectionSpec, Engine};
use crate::dialler::Dialler;
use crate::link::Statement;
use crate::reactor::{Pulse, finish};
use crate::spec::Protocol;
use crate::wire::link::Event;
use crate::wire::message::{column_names, columns};
use crate::wire::socket::Socket;
use crate::wire::stream::{Patience, Stream, Wire};

/// Largest number of bytes that the server sends: more would perhaps not fit into a socket from which nobody reads.
const BYTES_MAX: usize = 64 << 10;

/// Runs the client against a PostgreSQL server that sends these bytes and closes the connection; must return, whatever
/// the bytes are.
pub fn rehearse(bytes: &[u8]) {
    talk(bytes, "postgres");
}

/// Runs the client against a MariaDB server that sends these bytes and closes the connection; must return, whatever the
/// bytes are.
pub fn rehearse_mariadb(bytes: &[u8]) {
    talk(bytes, "mariadb");
}

fn talk(bytes: &[u8], engine: &str) {
    let Ok((ours, mut theirs)) = UnixStream::pair() else { return };
    let said = theirs.write_all(&bytes[..bytes.len().min(BYTES_MAX)]);
    if said.is_err() || theirs.shutdown(Shutdown::Write).is_err() || ours.set_nonblocking(true).is_err() {
        return;
    }
    let spec =
        format!(r#"{{"engine": "{engine}", "host": "/rehearsal", "user": "u", "dbname": "d", "password": "p"}}"#);
    let Ok(spec) = serde_json::from_str::<ConnectionSpec>(&spec) else { return };
    let dialler = Dialler::new(&spec);
    let stop: Arc<AtomicBool> = Arc::default();
    let patience = Patience::new(Some(Duration::from_secs(5)), &stop);
    let socket = Socket::Plain(Wire::new(Stream::Unix(ours), patience, Arc::default()));
    let Some(mut link) = dialler.ok().and_then(|dialler| dialler.log_in(socket, &stop).ok()) else { return };
    link.capture().on = true;
    let _ = finish(link.run("select 1", &Pulse::blocking()));
    let _ = columns(&link.capture().row).count();
    let _ = column_names(&link.capture().description);
    if let Some((statement, compiler, scope)) = command(spec.engine) {
        link.queue(&statement, 0, Protocol::Prepared, &scope, compiler.symbols());
        link.queue_sync();
        let _ = link.send();
    }
    // Reads until the bytes end, which is an error.
    while let Some(Ok(event)) = finish(link.event(&Pulse::blocking())) {
        if let Event::Failed(error) = event {
            let _ = error.words("select 1");
        }
        let _ = columns(&link.capture().row).count();
    }
}

/// Returns a command with one parameter, its compiler, and a scope with the parameter's value.
fn command(engine: Engine) -> Option<(Statement, Compiler, Scope)> {
    let mut compiler = Compiler::new();
    let script = compiler.compile("rehearsal", "\\set v 7\nselect :v;").ok()?;
    let sql = script.commands.iter().find_map(|command| match command {
        Command::Sql(sql) => Some(sql),
        _ => None,
    })?;
    let mut scope = Scope::new(compiler.symbols());
    scope.set(*sql.params.first()?, Value::Int(7));
    Some((Statement::new(engine, "s", sql, compiler.symbols()).ok()?, compiler, scope))
}

/// Returns what a correct MariaDB server sends, one entry for each login method: the seed inputs of the fuzzer.
pub fn mariadb_seeds() -> Vec<Vec<u8>> {
    let packet = |number: u8, body: &[u8]| {
        let mut out = (body.len() as u32).to_le_bytes();
        out[3] = number;
        [&out[..], body].concat()
    };
    let greeting = [
        &b"\x0a10.11.19-MariaDB\0\x07\0\0\0challeng\0"[..],
        // All capabilities that are needed and known metadata, but no TLS.
        &[0xfe, 0xf7, 45, 2, 0, 0xff, 0x81, 21, 0, 0, 0, 0, 0, 0, 0x1d, 0, 0, 0],
        b"and the rest\0mysql_native_password\0",
    ]
    .concat();
    let text = |text: &str| [&[text.len() as u8][..], text.as_bytes()].concat();
    let column =
        [&b"\x03def\0\0\0"[..], &text("v"), &text("v"), &[12, 45, 0, 20, 0, 0, 0, 8, 0x81, 0, 0, 0, 0]].concat();
    let ok = [0, 0, 0, 2, 0, 0, 0];
    let end = [0xfe, 0, 0, 2, 0, 0, 0];
    let error = [&[0xff][..], &1062_u16.to_le_bytes(), b"#23000Duplicate entry 'x' for key 'k'"].concat();
    let after = [
        packet(1, &[1, 1]),
        packet(2, &column),
        packet(3, b"\x017"),
        packet(4, &end),
        packet(1, &[&[0][..], &9_u32.to_le_bytes(), &[1, 0, 1, 0, 0, 0, 0]].concat()),
        packet(2, &column),
        packet(3, &column),
        packet(1, &[1, 0]),
        packet(2, &[0, 0, 7, 0, 0, 0, 0, 0, 0, 0]),
        packet(3, &end),
        packet(1, &error),
    ]
    .concat();
    let asked = [
        packet(2, &ok),
        [packet(2, b"\xfeclient_ed25519\0a challenge of thirty-two bytes.."), packet(4, &ok)].concat(),
        [packet(2, b"\xfecaching_sha2_password\0a challenge of bytes\0"), packet(4, &[1, 4]), packet(6, &ok)].concat(),
        packet(2, &error),
    ];
    asked.into_iter().map(|asked| [packet(0, &greeting), asked, after.clone()].concat()).collect()
}

/// Returns what a correct PostgreSQL server sends, one entry for each login method: the seed inputs of the fuzzer.
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
        for seed in mariadb_seeds() {
            rehearse_mariadb(&seed);
        }
    }

    proptest! {
        #[test]
        fn a_server_that_lies_never_makes_the_client_panic_or_hang(
            seed in 0_usize..4,
            changes in prop::collection::vec((0_usize..400, any::<u8>()), 0..8),
            cut in 0_usize..400,
        ) {
            let lie = |mut bytes: Vec<u8>| {
                for &(at, value) in &changes {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = value;
                    }
                }
                bytes.truncate(bytes.len().saturating_sub(cut));
                bytes
            };
            rehearse(&lie(seeds()[seed].clone()));
            rehearse_mariadb(&lie(mariadb_seeds()[seed].clone()));
        }
    }
}
