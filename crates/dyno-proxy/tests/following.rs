//! Tests of following: a session's messages become calls that, with the think time, account for all of its time.

use std::path::{Path, PathBuf};

use dyno_evidence::table::read_table;
use dyno_evidence::trace_store::Store;
use dyno_proxy::follow::Follower;
use dyno_proxy::framing::Message;
use dyno_proxy::shared::{Shared, packed};

const US: u64 = 1_000;

struct Session {
    follower: Follower,
    shared: Shared,
    dir: PathBuf,
}

impl Session {
    /// Returns a session that logged in at 10 us.
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("dyno-proxy-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder for the test");
        let shared = Shared::new(Store::new(&dir, 0), false);
        let mut made = Self { follower: Follower::new(0, 0), shared, dir };
        made.server(10, &[(b'R', b"\0\0\0\0"), (b'K', &[0, 0, 4, 210, 0, 0, 0, 1]), (b'Z', b"I")]);
        made
    }

    fn client(&mut self, at_us: u64, messages: &[(u8, &[u8])]) {
        for (tag, body) in messages {
            let message = Message { tag: *tag, length: body.len(), body };
            self.follower.client(at_us * US, message, &mut self.shared);
        }
    }

    /// Passes these messages of the server to the follower, as if one read had brought them.
    fn server(&mut self, at_us: u64, messages: &[(u8, &[u8])]) {
        for (tag, body) in messages {
            let message = Message { tag: *tag, length: body.len(), body };
            self.follower.server(at_us * US, message, &mut self.shared);
        }
        self.follower.settle(at_us * US, &mut self.shared);
    }

    /// Returns kind, begin [us], duration [us] and rows of each call; checks that the sums equal the session's time.
    fn over(mut self, at_us: u64) -> Vec<(String, i64, i64, i64)> {
        self.follower.end(at_us * US, 0, None, &mut self.shared);
        self.shared.flush(true).expect("written");
        let row = &self.follower.row;
        assert_eq!(row.pid, 1234);
        assert_eq!(row.sums.call_ns + row.sums.between_ns, at_us * US, "all time is a call's or between");
        assert_eq!(row.sums.wait_inside_ns, row.sums.call_ns, "a call waits for somebody all the time");
        let found = calls(&self.dir);
        std::fs::remove_dir_all(&self.dir).ok();
        found
    }
}

fn calls(dir: &Path) -> Vec<(String, i64, i64, i64)> {
    let mut found = Vec::new();
    let columns = ["kind", "started_ns", "elapsed_ns", "rows"];
    for batch in read_table(&dir.join("calls/f000000-000000.parquet"), &columns).expect("opens") {
        let batch = batch.expect("whole");
        let (keys, words) = batch.words("kind").expect("words");
        let number = |name: &str| batch.i64s(name).expect("numbers");
        let (began, elapsed, rows) = (number("started_ns"), number("elapsed_ns"), number("rows"));
        for at in 0..batch.len() {
            let kind = words[keys[at] as usize].clone();
            found.push((kind, began[at] / 1_000, elapsed[at] / 1_000, rows[at].max(-1)));
        }
    }
    found.sort_by_key(|row| row.1);
    found
}

fn row(kind: &str, began: i64, elapsed: i64, rows: i64) -> (String, i64, i64, i64) {
    (kind.to_owned(), began, elapsed, rows)
}

#[test]
fn a_simple_query_lasts_from_its_message_to_its_answers_end() {
    let mut session = Session::new("simple");
    session.client(100, &[(b'Q', b"select 1\0")]);
    session.server(130, &[(b'T', b""), (b'D', b"")]);
    session.server(150, &[(b'D', b""), (b'C', b"SELECT 2\0"), (b'Z', b"I")]);
    session.client(200, &[(b'Q', b"end;\0")]);
    session.server(290, &[(b'C', b"COMMIT\0"), (b'Z', b"I")]);
    let expected = [row("connect", 0, 10, -1), row("exec", 100, 50, 2), row("commit", 200, 90, -1)];
    assert_eq!(session.over(300), expected);
}

#[test]
fn answers_that_come_together_are_the_executions_time() {
    let mut session = Session::new("together");
    let bind = b"\0s1\0\0\0\0\0\0\0";
    session.client(
        100,
        &[(b'P', b"s1\0select $1\0\0\0"), (b'B', bind), (b'D', b"P\0"), (b'E', b"\0\0\0\0\0"), (b'S', b"")],
    );
    session.server(140, &[(b'1', b""), (b'2', b""), (b'T', b""), (b'D', b""), (b'C', b"SELECT 1\0"), (b'Z', b"I")]);
    let expected =
        [row("connect", 0, 10, -1), row("parse", 100, 0, -1), row("bind", 100, 0, -1), row("exec", 100, 40, 1)];
    assert_eq!(session.over(150), expected);
}

#[test]
fn a_portal_that_is_taken_up_again_is_a_fetch_and_a_call_in_a_pipeline_waits_for_the_one_before() {
    let mut session = Session::new("fetch");
    let bind = b"c1\0\0\0\0\0\0\0\0";
    session.client(100, &[(b'P', b"\0select g from t\0\0\0"), (b'B', bind), (b'E', b"c1\0\0\0\0\x05"), (b'S', b"")]);
    session.client(110, &[(b'E', b"c1\0\0\0\0\x05"), (b'S', b"")]);
    session.server(120, &[(b'1', b""), (b'2', b""), (b'D', b""), (b'D', b""), (b's', b""), (b'Z', b"T")]);
    session.server(150, &[(b'C', b"SELECT 3\0"), (b'Z', b"T")]);
    let found = session.over(150);
    assert_eq!(found[3..], [row("exec", 100, 20, 2), row("fetch", 120, 30, 3)]);
}

#[test]
fn after_an_error_what_is_sent_up_to_the_sync_goes_unanswered() {
    let mut session = Session::new("error");
    let bind = b"\0\0\0\0\0\0\0\0";
    session.client(100, &[(b'P', b"\0selec\0\0\0"), (b'B', bind), (b'E', b"\0\0\0\0\0")]);
    session.server(120, &[(b'E', b"SERROR\0C42601\0Mwith 'a value'\0\0")]);
    session.client(130, &[(b'B', bind), (b'E', b"\0\0\0\0\0"), (b'S', b"")]);
    session.server(140, &[(b'Z', b"I")]);
    session.client(160, &[(b'Q', b"select 1\0")]);
    session.server(170, &[(b'C', b"SELECT 1\0"), (b'Z', b"I")]);
    let states: Vec<u32> = session.shared.store.failures().map(|failure| failure.1).collect();
    assert_eq!(states, [packed(b"42601")]);
    let expected =
        [row("connect", 0, 10, -1), row("parse", 100, 20, -1), row("sync", 130, 10, -1), row("exec", 160, 10, 1)];
    assert_eq!(session.over(200), expected);
}

#[test]
fn rows_of_a_copy_are_the_clients_time_within_the_call() {
    let mut session = Session::new("copy");
    // As libpq does: the Sync that it sent with the execution is not answered while rows are outstanding.
    session.client(
        100,
        &[(b'P', b"\0copy t from stdin\0\0\0"), (b'B', b"\0\0\0\0\0\0\0\0"), (b'E', b"\0\0\0\0\0"), (b'S', b"")],
    );
    session.server(110, &[(b'1', b""), (b'2', b""), (b'G', b"\0\0\0")]);
    session.client(150, &[(b'd', b"1\n"), (b'd', b"2\n")]);
    session.client(180, &[(b'c', b""), (b'S', b"")]);
    session.server(200, &[(b'C', b"COPY 2\0"), (b'Z', b"I")]);
    session.client(300, &[(b'Q', b"select 1\0")]);
    session.server(310, &[(b'C', b"SELECT 1\0"), (b'Z', b"I")]);
    let found = session.over(310);
    assert_eq!(found[1].0, "parse");
    let rows: Vec<_> = found.iter().filter(|call| call.0 == "exec").collect();
    assert_eq!((rows[0].2, rows[0].3, rows[1].1), (90, 2, 300));
}
