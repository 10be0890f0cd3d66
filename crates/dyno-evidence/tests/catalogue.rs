//! The catalogue of wait events: one class per event, events that users see, and events to which tables used to assign
//! different classes.

use std::collections::HashSet;

use dyno_evidence::catalogue::{Class, Engine, class_of, events, find};

fn oracle(event: &str) -> &'static str {
    class_of(Engine::Oracle, "", event).name()
}

fn postgres(kind: &str, event: &str) -> &'static str {
    class_of(Engine::PostgreSql, kind, event).name()
}

fn mariadb(kind: &str, event: &str) -> &'static str {
    class_of(Engine::MariaDb, kind, event).name()
}

#[test]
fn no_event_has_two_classes() {
    for engine in Engine::ALL {
        let mut seen = HashSet::new();
        for row in events(engine) {
            let by_name_alone = engine == Engine::Oracle && row.event != "%";
            let kind = if by_name_alone { String::new() } else { row.engine_class.to_lowercase() };
            assert!(seen.insert((kind, row.event.to_lowercase())), "{engine:?}: {} stands twice", row.event);
        }
    }
}

#[test]
fn every_row_finds_itself_whatever_rows_stand_beside_it() {
    for engine in Engine::ALL {
        for row in events(engine).iter().filter(|row| !row.event.contains('%')) {
            let found = find(engine, row.engine_class, row.event);
            assert_eq!(found, Some(row), "{engine:?}: two spellings of {} are the same event", row.event);
        }
    }
}

#[test]
fn rows_are_whole_and_sorted() {
    for engine in Engine::ALL {
        let rows = events(engine);
        assert!(rows.iter().all(|row| !row.event.is_empty() && !row.engine_class.is_empty()), "{engine:?}");
        let key = |row: &dyno_evidence::catalogue::Event| {
            let event = row.event.to_lowercase();
            let kind = if engine == Engine::Oracle { String::new() } else { row.engine_class.to_lowercase() };
            if engine == Engine::MariaDb {
                (false, kind, event == "%", event)
            } else {
                (event == "%", kind, false, event)
            }
        };
        assert!(rows.windows(2).all(|two| key(&two[0]) <= key(&two[1])), "{engine:?}: sort the table");
    }
}

#[test]
fn an_oracle_event_has_one_class_with_and_without_oracles_own() {
    for row in events(Engine::Oracle).iter().filter(|row| !row.event.contains('%')) {
        assert_eq!(class_of(Engine::Oracle, "", row.event), class_of(Engine::Oracle, row.engine_class, row.event));
    }
}

#[test]
fn what_tables_disagreed_about_is_decided() {
    for (event, class) in [
        ("gc cr request", "cluster"),
        ("log file switch completion", "log write"),
        ("log file sequential read", "data read"),
        ("library cache lock", "lock"),
        ("library cache pin", "lock"),
        ("row cache lock", "lock"),
        ("cursor: pin S wait on X", "lock"),
        ("resmgr:cpu quantum", "scheduler"),
        ("SQL*Net break/reset to client", "network"),
        ("local write wait", "data write"),
        ("direct path sync", "data write"),
        ("enq: HW - contention", "lock"),
        ("enq: JX - SQL statement queue", "scheduler"),
        ("cell worker idle", "idle"),
        ("SQL*Net message from client", "idle"),
    ] {
        assert_eq!(oracle(event), class, "{event}");
    }
}

#[test]
fn waits_for_another_instance_are_cluster_and_its_processes_without_work_idle() {
    for event in
        ["gc cr block 2-way", "gc current block busy", "gc buffer busy acquire", "ges message buffer allocation"]
    {
        assert_eq!(oracle(event), "cluster", "{event}");
    }
    for event in ["gcs remote message", "ges remote message", "DIAG idle wait", "gcs for action"] {
        assert_eq!(oracle(event), "idle", "{event}");
    }
    assert_eq!(oracle("global cache cr request"), "cluster", "its name before release 10");
}

#[test]
fn a_shared_server_without_work_is_idle_and_its_circuit_is_network() {
    for event in
        ["shared server idle wait", "virtual circuit status", "virtual circuit next request", "dispatcher timer"]
    {
        assert_eq!(oracle(event), "idle", "{event}");
    }
    assert_eq!(oracle("virtual circuit wait"), "network");
}

#[test]
fn an_event_of_a_coming_release_has_the_class_of_its_family_or_of_oracles_own_class() {
    assert_eq!(oracle("gc something new"), "cluster");
    assert_eq!(oracle("cell single block physical read: new medium"), "data read");
    assert_eq!(oracle("no such event"), "other");
    assert_eq!(class_of(Engine::Oracle, "Network", "no such event").name(), "network");
    assert_eq!(class_of(Engine::Oracle, "Configuration", "no such event").name(), "other");
}

#[test]
fn events_of_postgresql_are_found_in_the_spelling_of_each_version() {
    for (kind, event, class) in [
        ("IO", "WALSync", "commit"),
        ("IO", "WalSync", "commit"),
        ("LWLock", "WALWriteLock", "commit"),
        ("LWLock", "WALWrite", "commit"),
        ("LWLockTranche", "buffer_content", "latch"),
        ("LWLockNamed", "ProcArrayLock", "latch"),
        ("LWLock", "buffer_io", "data read"),
        ("IPC", "BufferIO", "data read"),
        ("IPC", "Hash/Batch/Allocating", "other"),
        ("Lock", "transactionid", "lock"),
        ("Client", "ClientRead", "network"),
        ("Activity", "CheckpointerMain", "idle"),
        ("Extension", "DblinkConnect", "other"),
    ] {
        assert_eq!(postgres(kind, event), class, "{kind} {event}");
    }
    assert_eq!(postgres("IO", ""), "CPU");
}

#[test]
fn the_same_wait_of_mariadb_has_one_class_as_a_state_and_as_an_instrument() {
    for (state, instrument) in [
        ("Waiting for table metadata lock", "wait/synch/cond/sql/MDL_context::COND_wait_status"),
        ("Waiting for prior transaction to commit", "wait/synch/cond/sql/wait_for_commit::COND_wait_commit"),
        ("User lock", "wait/synch/cond/sql/User_level_lock::cond"),
        ("User sleep", "wait/synch/cond/sql/Item_func_sleep::cond"),
        ("Reading from net", "wait/io/socket/sql/client_connection"),
    ] {
        assert_eq!(mariadb("state", state), mariadb("wait", instrument), "{state}");
    }
    assert_eq!(mariadb("wait", "wait/synch/mutex/innodb/log_sys_mutex"), "latch");
    assert_eq!(mariadb("state", "Sorting result"), "CPU");
    assert_eq!(mariadb("lock", "innodb row lock"), "lock");
    assert_eq!(mariadb("wait", "no/such/instrument"), "other");
}

#[test]
fn classes_and_engines_are_known_by_their_names() {
    assert!(Class::ALL.iter().enumerate().all(|(at, class)| *class as usize == at));
    assert!(Class::ALL.into_iter().all(|class| Class::named(class.name()) == Some(class)));
    assert!(Engine::ALL.into_iter().all(|engine| Engine::named(engine.name()) == Some(engine)));
    assert_eq!(Class::named("Commit"), None);
}
