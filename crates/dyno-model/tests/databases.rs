//! Tests two databases on the same storage: their shares with and without resource management against closed forms,
//! separate parts of the devices, separate random streams, and refused settings.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::rc::Rc;

use dyno_evidence::read_calls;
use dyno_model::device::partition::Partition;
use dyno_model::device::{Device, Done, Request};
use dyno_model::kernel::Simulation;
use dyno_model::machine::{Machine, MachineError, built_in};
use dyno_model::run::{Control, Run};
use dyno_model::workload::{Stop, Workload};
use serde_json::{Value, json};

/// Virtual time of a measurement [s].
const SECONDS: u64 = 60;

fn lookup(more: &Value) -> Value {
    let mut load = json!({"kind": "key-lookup", "keys": 400_000_000});
    load.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    load
}

/// Returns a machine with one cell that has one disk and no flash; ORCL has 10 shares, TEST has 4.
fn one_disk(sessions: u64, more: &str) -> Machine {
    let text = format!(
        r#"title = "one disk"
[databases.TEST]
[databases.TEST.workload]
kind = "key-lookup"
keys = 400_000_000
sessions = {sessions}
{more}
[cells]
count = 1
disks = 1
modules = 0
[cells.disk]
scheduler = "fifo"
[cells.groups.DATA]
size_gb = 400
redundancy = "external"
[cells.iorm.plan.ORCL]
share = 10
[cells.iorm.plan.TEST]
share = 4
[storage]
redo = "DATA"
data = "DATA"
"#
    );
    Machine::parse(&text).unwrap()
}

/// Returns ORCL's share of the disk's reads if ORCL has this many sessions, and the number of reads.
fn share(machine: &Machine, sessions: u32, load: &Value) -> (f64, f64) {
    let simulation = Simulation::new(15);
    let built = machine.build(&simulation, Rc::new(())).unwrap();
    let load: Workload = serde_json::from_value(load.clone()).unwrap();
    load.spawn(&simulation, &built.instance, sessions, &Stop::never()).unwrap();
    for database in &built.beside {
        database.work(&simulation).unwrap();
    }
    simulation.run_until(SECONDS * 1_000_000_000).unwrap();
    assert!(built.broken().is_empty() && built.reports().iter().all(|report| report.little));
    let metrics = built.rack.unwrap().metrics();
    let done = |name: &str| {
        let own = metrics.iter().filter(|m| m.object == name && m.name == "DB_IO_RQ_SM");
        own.map(|m| m.value).sum::<f64>()
    };
    let (own, other) = (done("ORCL"), done("TEST"));
    println!("ORCL {own}, TEST {other}: {:.4}", own / (own + other));
    (own / (own + other), own + other)
}

/// Claim N15: both databases always have waiting requests, they get turns at a ratio of 10 to 4, and all reads cost the
/// same.
#[test]
fn shares_of_10_and_4_are_71_and_29_percent_where_both_always_wait() {
    let (of_orcl, reads) = share(&one_disk(60, ""), 60, &lookup(&json!({})));
    assert!((of_orcl - 10.0 / 14.0).abs() < 0.005, "{of_orcl} of {reads}");
    let turned = {
        let mut machine = one_disk(60, "");
        machine.set("cells.iorm.plan.ORCL.share", "1").unwrap();
        share(&machine, 60, &lookup(&json!({}))).0
    };
    assert!((turned - 1.0 / 5.0).abs() < 0.005, "{turned}");
}

/// Requests are served first come, first served, so every session gets equally many turns.
#[test]
fn without_a_plan_a_database_has_as_much_as_it_has_sessions() {
    let mut machine = one_disk(60, "");
    machine.set("cells.iorm.active", "false").unwrap();
    for (sessions, expected) in [(60, 0.5), (20, 0.25), (6, 6.0 / 66.0)] {
        let (of_orcl, reads) = share(&machine, sessions, &lookup(&json!({})));
        // Less than of independent turns: sessions come in rounds.
        let error = (expected * (1.0 - expected) / reads).sqrt();
        assert!((of_orcl - expected).abs() < 4.0 * error + 0.002, "{sessions}: {of_orcl}");
    }
}

/// 5 sessions that read every 10 s use less than their share, and the rest goes to the other database.
#[test]
fn what_a_database_does_not_use_goes_to_the_other() {
    let machine = one_disk(60, "");
    let alone = share(&machine, 1, &lookup(&json!({"think_ms": 3_600_000.0}))).1;
    let (of_orcl, reads) = share(&machine, 5, &lookup(&json!({"think_ms": 10_000.0})));
    assert!(of_orcl < 0.05 && (reads / alone - 1.0).abs() < 0.02, "{of_orcl}, {reads} of {alone}");
}

/// A device that records its requests.
struct Kept(std::cell::RefCell<Vec<Request>>);

impl Device for Kept {
    fn name(&self) -> &'static str {
        "kept"
    }
    fn capacity_bytes(&self) -> u64 {
        100 << 20
    }
    fn submit(&self, request: Request, _: Done) {
        self.0.borrow_mut().push(request);
    }
}

struct Nobody;

impl dyno_model::device::Observer for Nobody {
    fn done(&self, _: u64) {}
}

#[test]
fn each_database_has_a_part_of_a_device_and_never_leaves_it() {
    let kept = Rc::new(Kept(std::cell::RefCell::default()));
    let parts: Vec<_> = (0..3).map(|number| Partition::equal(kept.clone(), number, 3)).collect();
    for part in &parts {
        assert_eq!(part.capacity_bytes(), 33 << 20);
        for offset_mb in [0, 10, 32, 33, 1_000] {
            part.submit(Request::read(offset_mb << 20, 2 << 20), Done::new(Rc::new(Nobody), 0));
        }
    }
    let asked = kept.0.take();
    let from: Vec<u64> = asked.iter().map(|request| request.offset_bytes >> 20).collect();
    // 32 would run over the end by 1 MB; 33 is the beginning again, 1,000 is 10.
    assert_eq!(from, [0, 10, 31, 0, 10, 33, 43, 64, 33, 43, 66, 76, 97, 66, 76]);
}

struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("dyno-databases-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Runs these arms, in each of which five sessions of ORCL commit, on a machine that two databases share.
fn run(arms: &[Value]) -> Run {
    let arms: Vec<Value> = arms
        .iter()
        .enumerate()
        .map(|(number, settings)| {
            let load = json!({"kind": "commit-loop", "redo_bytes": "512..64KiB", "think_ms": 0.2});
            json!({"name": format!("arm {number}"), "settings": settings, "sessions": 5,
                "workload": load})
        })
        .collect();
    let text = json!({
        "machine": built_in("exadata-x2-shared").unwrap(), "seed": 4, "arms": arms,
        "transactions": 40, "warmup_transactions": 10,
    });
    Run::from_json(&text.to_string()).unwrap()
}

fn bytes(folder: &Folder, room: &str) -> Vec<u8> {
    fs::read(folder.0.join(room).join("b000000.parquet")).unwrap()
}

#[test]
fn a_run_with_two_databases_replays_to_the_byte() {
    let (one, two) = (Folder::new("one"), Folder::new("two"));
    let arms = [json!({}), json!({"databases.TEST.workload.sessions": "40"})];
    let hash = |folder: &Folder| {
        let done = run(&arms).block(0, &folder.0, &Control::default()).unwrap();
        assert!(done.invariants.little && done.invariants.conservation);
        // Calls and transactions are those of ORCL alone.
        assert_eq!((done.report.arms[0].transactions, done.rows), (200, 2 * 2 * 200));
        done.hash
    };
    assert_eq!(hash(&one), hash(&two));
    for room in ["calls", "waits", "metrics"] {
        assert_eq!(bytes(&one, room), bytes(&two, room), "{room}");
    }
}

#[test]
fn what_another_database_does_changes_no_dice_of_orcl() {
    let folder = Folder::new("dice");
    let arms = [json!({}), json!({"TEST.workload.sessions": "3"})];
    run(&arms).block(0, &folder.0, &Control::default()).unwrap();
    let calls = read_calls(&folder.0.join("calls/b000000.parquet")).unwrap();
    let sizes = |arm: u32| {
        let own = calls.arm.iter().zip(&calls.redo_bytes).filter(|(own, _)| **own == arm);
        let mut sizes: Vec<i64> = own.map(|(_, bytes)| *bytes).collect();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(sizes(0), sizes(1));
}

fn refused(more: &str, section: &str) -> MachineError {
    let text = format!(
        "title = \"two\"\n{section}\n{more}\n[devices.platter]\nkind = \"disk\"\n[storage]\nredo = \"platter\"\ndata = \"platter\"\n"
    );
    let error = Machine::parse(&text).map(|_| ()).unwrap_err();
    println!("{error}\n");
    error
}

#[test]
fn a_database_beside_that_cannot_be_is_named_with_its_line() {
    let load = "[databases.B.workload]";
    for (section, more, place, words, step) in [
        ("[databases.B]", "cores = 2", "line 2, databases.B", "has no kind of workload", "kind = ..."),
        (load, "kind = \"key-lokup\"", "line 3", "key-lokup", "`key-lookup`"),
        (load, "kind = \"sort\"\nkeys = 3", "line 4", "`keys`", "area_kb"),
        (load, "kind = \"sort\"\nsessions = 0", "line 4", "from 1 to 65535", "20"),
        (load, "kind = \"commit-loop\"\nredo_bytes = \"many\"", "line 4", "many", "4KiB"),
        (load, "kind = \"key-lookup\"\nkeys = 0", "line 4", "from 1 to 4294967295, found 0", "default"),
        ("[databases.ORCL.workload]", "kind = \"sort\"", "line 2", "`ORCL`", "letters"),
        ("[databases.\"a b\".workload]", "kind = \"sort\"", "line 2", "`a b`", "letters"),
        ("[databases.B]\ncors = 2", "[databases.B.workload]\nkind = \"sort\"", "line 3", "`cors`", "`cores`"),
    ] {
        let error = refused(more, section);
        assert!(error.place.contains(place), "{}", error.place);
        assert!(error.message.contains(words), "{}", error.message);
        assert!(error.next_step.contains(step), "{}", error.next_step);
    }
}

/// If both instances have a parameter, a short name refers to the one in `[database]`.
#[test]
fn a_short_name_means_the_database_that_is_studied() {
    let mut machine = one_disk(60, "");
    assert_eq!(machine.resolve("cores").unwrap(), "database.cores");
    assert_eq!(machine.resolve("TEST.cores").unwrap(), "databases.TEST.cores");
    assert_eq!(machine.resolve("workload.keys").unwrap(), "databases.TEST.workload.keys");
    machine.set("TEST.redo.block_bytes", "4096").unwrap();
    assert!(machine.set("sessions", "0").is_err());
    let described = machine.describe();
    assert_eq!(described.databases[0].name, "TEST");
    assert_eq!(described.databases[0].text, "60 sessions of key-lookup, 16 cores");
}

/// Without cells, each of two databases on one disk gets half of the disk.
#[test]
fn two_databases_share_any_device() {
    let text = "title = \"two\"\n[databases.B.workload]\nkind = \"update-loop\"\n[devices.platter]\nkind = \"disk\"\n[storage]\nredo = \"platter\"\ndata = \"platter\"\n";
    let simulation = Simulation::new(1);
    let machine = Machine::parse(text).unwrap();
    let built = machine.build(&simulation, Rc::new(())).unwrap();
    let other = &built.beside[0];
    let (own, others) = (built.instance.storage(), other.instance.storage());
    let half = own.data.capacity_bytes();
    assert_eq!(half, others.data.capacity_bytes());
    assert_eq!(half, own.redo[0].capacity_bytes());
    other.work(&simulation).unwrap();
    simulation.run_until(2_000_000_000).unwrap();
    let names: Vec<String> = built.reports().into_iter().map(|report| report.name).collect();
    assert_eq!(names, ["cpu", "B cpu", "platter"]);
    assert!(other.instance.redo().counts().redo_bytes > 0);
    assert_eq!(built.instance.redo().counts().redo_bytes, 0);
}
