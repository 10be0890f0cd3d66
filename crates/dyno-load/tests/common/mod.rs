//! PostgreSQL server for a test binary, and short functions to run a block on it.
//!
//! The server's files are in a private temporary folder. It runs as an ordinary user even if the tests run as root, and
//! it ends with the test process, however the process ends. If no server is installed, the tests report this and pass:
//! see [`server`].

#![allow(dead_code)] // each test binary uses a part
#![allow(clippy::doc_markdown)] // names of products

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dyno_evidence::{CallColumns, CallsWriter, read_calls};
use dyno_load::{BlockReport, Length, Load, LoadError, LoadSpec, Slice};
use serde_json::{Value, json};

/// Running server.
pub struct Server {
    bin: PathBuf,
    /// Folder of the server, which also contains the Unix socket.
    pub dir: PathBuf,
    pub port: u16,
    owner: Option<(u32, u32)>,
    /// Shell that guards the server; a pipe to the test process shows it when that process has ended.
    _guard: Child,
}

/// Returns the server of this test binary, or prints a message and returns `None` if none is installed.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let server = SERVER.get_or_init(|| binaries().map(|bin| Server::start(bin, &[])));
    if server.is_none() {
        eprintln!("skipped: no PostgreSQL server found; set DBDYNO_PG_BIN to its bin folder");
    }
    server.as_ref()
}

/// Returns the folder with the programs of the newest installed server.
pub fn binaries() -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("DBDYNO_PG_BIN") {
        return Some(dir.into());
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version = entry.file_name().to_str()?.parse().ok()?;
            let bin = entry.path().join("bin");
            bin.join("initdb").exists().then_some((version, bin))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, bin)| bin)
}

/// Returns the user id and group id under which the server must run; `None` for the current user.
fn owner() -> Option<(u32, u32)> {
    let root = std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    if !root {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").expect("the users");
    ["postgres", "nobody"].iter().find_map(|name| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

const HBA: &str = "local all all trust
host all scram all scram-sha-256
host all md5 all md5
host all clear all password
hostssl all tls all scram-sha-256
host all tls all reject
host all nobody_may all reject
host all all 127.0.0.1/32 trust
";

impl Server {
    /// Creates a cluster and starts it with these settings.
    pub fn start(bin: PathBuf, settings: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("dyno-load-{}-{number}", std::process::id()));
        std::fs::create_dir(&dir).expect("a new folder");
        let owner = owner();
        own(&dir, owner, 0o700);
        let data = dir.join("data");
        let mut initdb = Command::new(bin.join("initdb"));
        initdb.arg("-D").arg(&data).args(["-U", "boss", "-A", "trust", "-E", "UTF8", "-N"]);
        let made = as_owner(&mut initdb, owner).current_dir(&dir).output().expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        std::fs::write(data.join("pg_hba.conf"), HBA).expect("writes");
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
        let mut command = Command::new("sh");
        // Ends the server and removes its files when the test process closes the pipe by ending.
        command
            .arg("-c")
            .arg(r#""$@" >"$0/log" 2>&1 & server=$!; cat >/dev/null; kill -QUIT $server; wait $server; rm -rf "$0""#);
        command.arg(&dir).arg(bin.join("postgres")).arg("-D").arg(&data);
        let socket = format!("unix_socket_directories={}", dir.display());
        let port_setting = format!("port={port}");
        let ours = ["fsync=off", "listen_addresses=127.0.0.1", "max_connections=50"];
        for setting in ours.iter().chain(settings).copied().chain([&*socket, &*port_setting]) {
            command.arg("-c").arg(setting);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.current_dir(&dir).process_group(0);
        let guard = as_owner(&mut command, owner).spawn().expect("a shell");
        let server = Self { bin, dir, port, owner, _guard: guard };
        server.wait_until_up();
        server
    }

    fn wait_until_up(&self) {
        let start = Instant::now();
        while self.psql("select 1").is_err() {
            let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            assert!(start.elapsed() < Duration::from_secs(30), "the server does not start: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Creates a file in the server's folder that only the server can read; returns its path.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::write(&path, text).expect("writes");
        own(&path, self.owner, 0o600);
        path
    }

    fn psql(&self, sql: &str) -> Result<String, String> {
        let output = Command::new(self.bin.join("psql"))
            .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-U", "boss", "-d", "postgres", "-h"])
            .arg(&self.dir)
            .args(["-p", &self.port.to_string(), "-c", sql])
            .output()
            .expect("psql runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Runs SQL outside of the load and returns its output.
    pub fn sql(&self, sql: &str) -> String {
        self.psql(sql).expect("the test's own SQL is right")
    }

    /// Runs a program from the server's installation, connected to the server's socket.
    pub fn program(&self, name: &str, args: &[&str]) {
        let output = Command::new(self.bin.join(name))
            .args(["-U", "boss", "-h"])
            .arg(&self.dir)
            .args(["-p", &self.port.to_string()])
            .args(args)
            .output()
            .expect("runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Returns the options with which an arm connects.
    pub fn connection(&self, application: &str) -> Value {
        json!({"host": self.dir, "port": self.port, "user": "boss", "dbname": "postgres",
            "application_name": application})
    }

    /// Returns a specification with one arm, whose name is also its application name; `more` overrides keys of the arm.
    pub fn spec(&self, name: &str, script: &str, more: Value) -> Value {
        let mut arm = json!({"name": name, "connection": self.connection(name), "sessions": 1,
            "scripts": [{"name": "script", "text": script}]});
        merge(&mut arm, more);
        json!({"seed": 7, "arms": [arm]})
    }

    /// Waits for a session of this application and returns its process number.
    pub fn backend(&self, application: &str) -> u32 {
        let query = format!("select pid from pg_stat_activity where application_name = '{application}' limit 1");
        for _ in 0..200 {
            if let Ok(pid) = self.sql(&query).parse() {
                return pid;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no session of {application}");
    }
}

fn merge(into: &mut Value, from: Value) {
    let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) else { return };
    into.extend(from);
}

fn as_owner(command: &mut Command, owner: Option<(u32, u32)>) -> &mut Command {
    if let Some((user, group)) = owner {
        command.uid(user).gid(group);
    }
    command
}

fn own(path: &Path, owner: Option<(u32, u32)>, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("sets the mode");
    if let Some((user, group)) = owner {
        chown(path, Some(user), Some(group)).expect("gives it away");
    }
}

/// Sends a signal to one process of the server.
pub fn signal(name: &str, process: u32) {
    let status = Command::new("kill").args(["-s", name, &process.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// Returns a load that is ready to run.
pub fn load(spec: &Value) -> Load {
    let spec = LoadSpec::from_json(&spec.to_string()).expect("the test's specification is right");
    Load::new(&spec).expect("the test's scripts are right")
}

/// Returns a slice of the first arm with this number of transactions.
pub fn transactions(count: u64) -> Vec<Slice> {
    vec![Slice { arm: 0, slice: 0, length: Length::Transactions(count) }]
}

/// Returns a slice of the first arm with this length [ms].
pub fn millis(ms: u64) -> Vec<Slice> {
    vec![Slice { arm: 0, slice: 0, length: Length::DurationNs(ms * 1_000_000) }]
}

/// Report and rows of a block.
pub struct Block {
    pub report: BlockReport,
    pub calls: CallColumns,
}

/// Runs one block and reads its evidence back.
pub fn run(load: &mut Load, slices: &[Slice]) -> Result<Block, LoadError> {
    run_until(load, slices, &Arc::default())
}

/// Runs one block until its end or until `stop`, and reads its evidence back.
pub fn run_until(load: &mut Load, slices: &[Slice], stop: &Arc<AtomicBool>) -> Result<Block, LoadError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("dyno-calls-{}-{number}", std::process::id()));
    let mut writer = CallsWriter::create(&dir, "b", &load.arm_names(), load.statement_names()).expect("a part begins");
    let progress = AtomicU64::new(0);
    let report = load.run(3, slices, &mut writer, stop, &progress);
    let rows = writer.finish().expect("the part is whole");
    let calls = read_calls(&dir.join("b.parquet")).expect("the part is readable");
    std::fs::remove_dir_all(&dir).expect("removes");
    let report = report?;
    assert_eq!(rows as usize, calls.kind.len());
    let done: u64 = report.arms.iter().map(|arm| arm.transactions).sum();
    assert_eq!(progress.load(Ordering::Relaxed), done);
    Ok(Block { report, calls })
}

impl Block {
    fn word(&self, word: u32) -> &str {
        self.calls.words.get(word as usize).map_or("", String::as_str)
    }

    /// Returns the row numbers of one kind.
    pub fn kind(&self, kind: &str) -> Vec<usize> {
        (0..self.calls.kind.len()).filter(|&row| self.word(self.calls.kind[row]) == kind).collect()
    }

    /// Returns kind and statement of each row.
    pub fn names(&self) -> Vec<(&str, &str)> {
        let word = |column: &[u32], row: usize| self.word(column[row]);
        (0..self.calls.kind.len())
            .map(|row| {
                let name = self.calls.statement[row];
                (word(&self.calls.kind, row), self.word(name))
            })
            .collect()
    }

    /// Returns the error codes of the rows of one kind; an empty text for no error.
    pub fn errors(&self, kind: &str) -> Vec<&str> {
        self.kind(kind).into_iter().map(|row| self.word(self.calls.error[row])).collect()
    }

    /// Returns the values of a column in the rows of one kind.
    pub fn values(&self, kind: &str, column: fn(&CallColumns) -> &Vec<i64>) -> Vec<i64> {
        self.kind(kind).into_iter().map(|row| column(&self.calls)[row]).collect()
    }
}
