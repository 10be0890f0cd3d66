//! Tests of the calls and waits that sessions derive from notes, and of the code of installed servers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use dyno_evidence::table::read_table;
use dyno_record::classes;
use dyno_record::code::Code;
use dyno_record::elf::Image;
use dyno_record::names::Names;
use dyno_record::place::{Site, Value};
use dyno_record::probes::{self, Kind, Version, What};
use dyno_record::session::{Known, Session, Who};
use dyno_record::small;
use dyno_record::store::{Server, Store, state_text};

const READ: u32 = 0x0600_0000;
const SYNC: u32 = 0x0a00_0001;
const US: u64 = 1_000;

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("dyno-record-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder for the test");
    dir
}

fn known() -> Known {
    Known { price_ns: 500, ..Known::of(READ) }
}

fn client() -> Who {
    Who { kind: "client backend".to_owned(), ..Who::default() }
}

fn rows(dir: &Path, table: &str, texts: &[&str], numbers: &[&str]) -> Vec<(Vec<String>, Vec<i64>)> {
    let path = dir.join(table).join("f000000-000000.parquet");
    let columns: Vec<&str> = texts.iter().chain(numbers).copied().collect();
    let mut found = Vec::new();
    for batch in read_table(&path, &columns).expect("the part opens") {
        let batch = batch.expect("a whole batch");
        for at in 0..batch.len() {
            let word = |name: &&str| {
                let (keys, words) = batch.words(name).expect("words");
                words.get(keys[at] as usize).cloned().unwrap_or_default()
            };
            let number = |name: &&str| batch.i64s(name).expect("numbers")[at];
            found.push((texts.iter().map(word).collect(), numbers.iter().map(number).collect()));
        }
    }
    found
}

#[test]
fn calls_and_think_time_are_all_of_a_sessions_time() {
    let dir = folder("closes");
    let (mut store, mut known) = (Store::new(&dir, 0), known());
    let mut session = Session::new(0, 7, client(), 0, Some(READ), &mut known);
    session.switched(90 * US, false);
    session.wait(100 * US, 0, &mut store, &mut known); // the client's message has arrived
    session.take_up(110 * US, Kind::Exec, Some(b"commit"), &mut store, &mut known);
    session.wait(150 * US, SYNC, &mut store, &mut known);
    session.switched(160 * US, true);
    session.switched(350 * US, false);
    session.wait(360 * US, 0, &mut store, &mut known);
    session.switched(370 * US, true); // could run, but has no processor
    session.switched(400 * US, false);
    session.finish_statement(410 * US, Some(3), &mut store, &mut known);
    session.wait(420 * US, READ, &mut store, &mut known);
    session.switched(430 * US, true);
    session.end(1_000 * US, false, &mut store, &mut known);
    let sums = session.sums;
    assert_eq!(sums.call_ns + sums.between_ns, 1_000 * US);
    assert_eq!((sums.call_ns, sums.wait_inside_ns, sums.cpu_ns), (320 * US, 210 * US, 80 * US));
    store.finish().expect("written");
    small::write(&store, &[session], &Server::default()).expect("written");
    let calls = rows(&dir, "calls", &["kind"], &["elapsed_ns", "rows", "self_wait_ns"]);
    assert_eq!(calls, [(vec!["exec".to_owned()], vec![320_000, 3, 210_000])]);
    let waits = rows(&dir, "waits", &["fidelity"], &["elapsed_ns", "p1", "p2", "p3"]);
    let numbers: Vec<_> = waits.into_iter().map(|row| row.1).collect();
    assert!(numbers.contains(&vec![210_000, 20_000, 209_500, 0]), "CPU inside, and without the probe: {numbers:?}");
    assert!(numbers.contains(&vec![100_000, 10_000, 100_000, 1]), "had begun before: {numbers:?}");
    assert!(numbers.contains(&vec![580_000, 10_000, 580_000, 2]), "was not over: {numbers:?}");
    std::fs::remove_dir_all(dir).ok();
}

#[test]
fn time_whose_notes_were_lost_is_unobserved_and_nothing_is_counted_twice() {
    let dir = folder("lost");
    let (mut store, mut known) = (Store::new(&dir, 0), known());
    let mut session = Session::new(0, 7, client(), 0, Some(READ), &mut known);
    session.wait(100 * US, 0, &mut store, &mut known);
    session.take_up(110 * US, Kind::Exec, Some(b"select 1"), &mut store, &mut known);
    session.lose(200 * US, &mut store, &mut known);
    session.lose(210 * US, &mut store, &mut known);
    session.wait(700 * US, READ, &mut store, &mut known);
    session.end(1_000 * US, true, &mut store, &mut known);
    let sums = session.sums;
    assert_eq!(sums.call_ns + sums.between_ns, 1_000 * US);
    store.finish().expect("written");
    small::write(&store, &[session], &Server { gaps: vec![(12, 200 * US, 220 * US)], ..Server::default() })
        .expect("written");
    let waits = rows(&dir, "waits", &["event"], &["started_ns", "elapsed_ns"]);
    assert!(waits.contains(&(vec!["unobserved".to_owned()], vec![200_000, 500_000])), "{waits:?}");
    std::fs::remove_dir_all(dir).ok();
}

#[test]
fn a_wait_for_the_client_ends_a_call_unless_the_call_copies() {
    let dir = folder("copy");
    let (mut store, mut known) = (Store::new(&dir, 0), known());
    let mut session = Session::new(0, 7, client(), 0, Some(READ), &mut known);
    session.wait(10 * US, 0, &mut store, &mut known);
    session.take_up(20 * US, Kind::Exec, Some(b" COPY t from stdin"), &mut store, &mut known);
    session.wait(30 * US, READ, &mut store, &mut known);
    session.wait(40 * US, 0, &mut store, &mut known);
    session.finish_statement(50 * US, Some(9), &mut store, &mut known);
    session.wait(60 * US, READ, &mut store, &mut known);
    session.end(100 * US, true, &mut store, &mut known);
    assert_eq!((session.sums.calls, session.sums.wait_inside_ns), (1, 10 * US));
    store.finish().expect("written");
    small::write(&store, &[session], &Server::default()).expect("written");
    std::fs::remove_dir_all(dir).ok();
}

#[test]
fn a_statement_whose_text_nobody_saw_says_why_and_is_counted_and_one_that_is_seen_later_is_not() {
    let dir = folder("textless");
    let (mut store, mut known) = (Store::new(&dir, 0), known());
    store.textless = "too short";
    let mut session = Session::new(0, 7, client(), 0, Some(READ), &mut known);
    session.wait(10 * US, 0, &mut store, &mut known);
    for (at, id, text) in [(20, 5, None), (30, 6, None), (40, 6, Some(&b"select 6"[..])), (50, 5, None)] {
        session.take_up(at * US, Kind::Exec, text, &mut store, &mut known);
        session.query_id(at * US, id, &mut store, &mut known);
    }
    session.wait(60 * US, READ, &mut store, &mut known);
    session.end(100 * US, true, &mut store, &mut known);
    assert_eq!(store.without_text().collect::<Vec<_>>(), [("5", 2, 30 * US)]);
    let texts: Vec<_> = store.texts().map(|(key, text)| (key, text.into_owned())).collect();
    assert!(texts.contains(&("5", "(text not seen: too short; query id 5)".to_owned())), "{texts:?}");
    assert!(texts.contains(&("6", "select ?".to_owned())), "{texts:?}");
    std::fs::remove_dir_all(dir).ok();
}

/// Returns query id and text of each call of a session that does these steps, 10 us apart.
fn statements_of(name: &str, steps: &[Step]) -> Vec<(String, String)> {
    let dir = folder(name);
    let (mut store, mut known) = (Store::new(&dir, 0), known());
    let mut session = Session::new(0, 7, client(), 0, Some(READ), &mut known);
    let mut at_ns = 0;
    for step in steps {
        at_ns += 10 * US;
        match step {
            Step::Waits => {
                session.wait(at_ns, READ, &mut store, &mut known);
                session.wait(at_ns + US, 0, &mut store, &mut known);
            }
            Step::Takes(kind, text) => session.take_up(at_ns, *kind, Some(text.as_bytes()), &mut store, &mut known),
            Step::Id(id) => session.query_id(at_ns, *id, &mut store, &mut known),
            Step::Done => session.finish_statement(at_ns, Some(1), &mut store, &mut known),
        }
    }
    session.end(at_ns + 10 * US, true, &mut store, &mut known);
    let texts: HashMap<String, String> = store.texts().map(|(key, text)| (key.to_owned(), text.into_owned())).collect();
    store.finish().expect("written");
    small::write(&store, &[session], &Server::default()).expect("written");
    let rows = rows(&dir, "calls", &["kind", "statement"], &["started_ns"]);
    std::fs::remove_dir_all(dir).ok();
    let mut calls: Vec<_> = rows.into_iter().filter(|row| row.0[0] != "message" && row.0[0] != "disconnect").collect();
    calls.sort_by_key(|row| row.1[0]);
    calls.into_iter().map(|row| (row.0[1].clone(), texts.get(&row.0[1]).cloned().unwrap_or_default())).collect()
}

enum Step {
    Waits,
    Takes(Kind, &'static str),
    Id(u64),
    Done,
}
use Step::{Done, Id, Takes, Waits};

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn the_query_id_of_a_statement_that_is_bound_right_behind_another_is_its_own() {
    let quick = Takes(Kind::Exec, "select quick");
    let slow = || Takes(Kind::Exec, "select slow");
    // The next message had already arrived: its bind came without a wait.
    let found = statements_of("bound", &[Waits, Id(5), slow(), Done, Id(77), quick, Done, Waits, Id(5), slow(), Done]);
    assert_eq!(found, pairs(&[("5", "select slow"), ("77", "select quick"), ("5", "select slow")]));
}

#[test]
fn the_query_id_of_a_bind_behind_the_parse_of_another_statement_is_not_of_that() {
    let parse = |text| Takes(Kind::Parse, text);
    let steps = [Waits, parse("select a"), parse("select b"), Id(1), Takes(Kind::Exec, "select a"), Done];
    let found = statements_of("parses", &steps);
    assert_eq!((&found[0], &found[2]), (&found[2], &("1".to_owned(), "select a".to_owned())));
    assert!(found[1].0 != "1" && found[1].1 == "select b", "{found:?}");
}

#[test]
fn the_query_ids_of_statements_within_a_function_or_a_procedure_are_not_of_its_call() {
    let exec = |text| Takes(Kind::Exec, text);
    let found = statements_of(
        "inside",
        &[Waits, Id(3), exec("select f()"), Id(8), Done, Waits, exec("select f()"), Id(3), Id(8), Done],
    );
    assert_eq!(found, pairs(&[("3", "select f()"), ("3", "select f()")]));
    let found =
        statements_of("called", &[Waits, exec("call p()"), Id(8), Done, Waits, exec("select inner"), Id(8), Done]);
    assert!(found[0].0 != "8" && found[0].1 == "call p()", "{found:?}");
    assert_eq!(found[1], ("8".to_owned(), "select inner".to_owned()));
}

#[test]
fn the_second_statement_of_one_text_gives_its_query_id_to_no_other() {
    let both = Takes(Kind::Exec, "select a; select b");
    let found =
        statements_of("two", &[Waits, both, Id(1), Done, Id(2), Done, Takes(Kind::Exec, "select c"), Id(3), Done]);
    assert_eq!(found, pairs(&[("1", "select a; select b"), ("3", "select c")]));
}

#[test]
fn a_state_is_the_five_letters_that_the_server_packs() {
    assert_eq!(state_text(2_600), "XX000");
}

/// Returns the servers on this machine and those that `tools/matrix --fetch` has fetched; usually none.
fn servers() -> Vec<PathBuf> {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/matrix");
    let entries = ["/usr/lib/postgresql", fetched].into_iter().flat_map(std::fs::read_dir).flatten().flatten();
    entries.map(|entry| entry.path().join("bin/postgres")).filter(|path| path.exists()).collect()
}

#[test]
fn the_code_of_an_installed_server_tells_its_stores_its_calls_and_its_names() {
    for path in servers() {
        let image = Image::open(&path).expect("a program");
        let Ok(version) = Version::of(&image) else { continue };
        let (functions, addresses) = probes::wanted(&image).expect("exported names");
        let mut code = Code::read(&image, &functions, &addresses);
        let stepped = |plan: &probes::Plan| plan.sites.iter().filter(|site| site.is_stepped).count();
        let short = stepped(&probes::plan(&code, &version, true, true).expect("a plan"));
        code.long_nops = true;
        let plan = probes::plan(&code, &version, true, true).expect("a plan");
        let stepped = stepped(&plan);
        assert!(stepped <= short, "{path:?}: {stepped} of {short} with long nops");
        let places: std::collections::HashSet<u64> = plan.probes.iter().map(|probe| probe.addr).collect();
        assert_eq!(places.len(), plan.probes.len(), "{path:?}: two probes at one place");
        assert!(plan.sites.len() > 100 && stepped < 25, "{path:?}: {} stores, {stepped} stepped", plan.sites.len());
        let of = |wanted: What| plan.probes.iter().filter(|probe| probe.what == wanted).count();
        assert_eq!((of(What::Running(Kind::Parse)), of(What::Running(Kind::Bind))), (1, 1), "{path:?}");
        assert!(of(What::Running(Kind::Exec)) >= 3 && of(What::Done) >= 2 && of(What::QueryId) >= 1, "{path:?}");
        let plain = probes::plan(&code, &version, true, false).expect("a plan");
        assert!(plain.probes.iter().all(|probe| probe.what != What::Running(Kind::Bind)), "{path:?}");
        let of_class = |class: u8, is_end: bool| {
            let is_it = |what| matches!(what, What::Wait(value) if is_end == (value == Value::Known(0)));
            plan.probes.iter().filter(|probe| probe.class == class && is_it(probe.what)).count()
        };
        assert_eq!((of_class(classes::LWLOCK, false), of_class(classes::LWLOCK, true)), (3, 3), "{path:?}");
        // Builds for size have one end of many waits, in a function.
        assert!(of_class(classes::IO, false) > 50 && of_class(classes::IO, true) > 25, "{path:?}");
        let read = ["FileRead", "FileReadV"].into_iter().find_map(|name| image.symbol(name)).expect("exported");
        let reads = |probe: &&probes::Probe| (read.addr..read.addr + read.size).contains(&probe.addr);
        assert!(plan.probes.iter().filter(reads).all(|probe| probe.class == classes::IO), "{path:?}: reads of files");
        // What every round trip and every read uses must not be single-stepped.
        let client = image.symbol("WaitEventSetWait").expect("exported");
        let hot =
            |probe: &&probes::Probe| reads(probe) || (client.addr..client.addr + client.size).contains(&probe.addr);
        let dear: Vec<What> = plan.probes.iter().filter(hot).filter(|at| at.is_stepped).map(|at| at.what).collect();
        assert_eq!(dear, [], "{path:?}");
        let waits = |site: &&Site| (client.addr..client.addr + client.size).contains(&site.store);
        let ends: Vec<&Site> = plan.sites.iter().filter(waits).filter(|site| site.value == Value::Known(0)).collect();
        assert!(ends.iter().filter(|site| site.is_stepped).count() <= 2, "{path:?}: {ends:?}");
        assert!(ends.len() == 1 || ends.len() > 5, "{path:?}: beside the store, or behind each call: {ends:?}");
        let foreign = |probe: &&probes::Probe| match probe.what {
            What::Wait(Value::Known(event)) if event != 0 && probe.class != 0 => event >> 24 != u32::from(probe.class),
            _ => false,
        };
        assert_eq!(plan.probes.iter().find(foreign).map(|probe| probe.addr), None, "{path:?}: of another class");
        let address = |name| image.need(name).expect("exported").addr;
        let mut names = Names::new(&code, address("pgstat_get_wait_event"), address("pgstat_get_wait_event_type"));
        let all: Vec<_> = (1..=10u32).flat_map(|class| (0..99).map(move |at| class << 24 | at)).collect();
        let all: Vec<_> = all.into_iter().map(|number| names.of(number)).collect();
        for (class, name) in [("Client", "ClientRead"), ("Lock", "transactionid"), ("LWLock", "WALWrite")] {
            assert!(all.contains(&(class.to_owned(), name.to_owned())), "{path:?}: {class}:{name}");
        }
        assert!(all.iter().any(|(class, name)| class == "IO" && name.eq_ignore_ascii_case("WALSync")), "{path:?}");
    }
}
