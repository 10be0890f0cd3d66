//! Tests a continuously running rack: counters move, commands take effect, and each cell collects separately.
#![allow(clippy::unwrap_used, clippy::float_cmp, missing_docs)]

use std::time::Duration;

use dyno_model::machine::built_in;
use dyno_model::run::RunError;
use dyno_model::run::rig::{Collected, Command, Rig};
use serde_json::{Value, json};

const LONG: Duration = Duration::MAX;
const SECOND_NS: u64 = 1_000_000_000;

fn spec(workload: &Value, settings: &Value) -> String {
    json!({
        "machine": built_in("exadata-x2").unwrap(),
        "seed": 7,
        "settings": settings,
        "sessions": 4,
        "workload": workload,
    })
    .to_string()
}

fn command(told: Value) -> Command {
    serde_json::from_value(told).unwrap()
}

fn commits() -> Rig {
    Rig::from_json(&spec(&json!({ "kind": "commit-loop", "think_ms": 5.0 }), &json!({}))).unwrap()
}

fn updates(mode: &str) -> Rig {
    let workload = json!({ "kind": "update-loop", "think_ms": 1.0, "blocks": 20_000 });
    let settings = json!({ "cells.flash_cache.mode": mode, "database.buffers.buffers": "500" });
    Rig::from_json(&spec(&workload, &settings)).unwrap()
}

fn sum(found: &Collected, name: &str) -> f64 {
    found.rows.iter().filter(|row| row.2 == name).map(|row| row.3).sum()
}

fn all(rig: &Rig, name: &str) -> f64 {
    (0..3).map(|cell| sum(&rig.collect(cell).unwrap(), name)).sum()
}

#[test]
fn counters_move_with_virtual_time() {
    let rig = commits();
    assert_eq!(all(&rig, "FL_RQ_W"), 0.0);
    assert_eq!(rig.advance(SECOND_NS, LONG).unwrap(), SECOND_NS);
    let first = all(&rig, "FL_RQ_W");
    assert!(first > 100.0, "{first}");
    rig.advance(SECOND_NS, LONG).unwrap();
    assert!(all(&rig, "FL_RQ_W") > 1.8 * first);
    assert!(rig.facts().unwrap().transactions > 0);
}

#[test]
fn the_way_it_is_cut_into_pieces_changes_nothing() {
    let (whole, pieces) = (commits(), commits());
    whole.advance(SECOND_NS, LONG).unwrap();
    for _ in 0..8 {
        pieces.advance(SECOND_NS / 8, LONG).unwrap();
    }
    let (a, b) = (whole.collect(1).unwrap(), pieces.collect(1).unwrap());
    assert_eq!(serde_json::to_string(&a).unwrap(), serde_json::to_string(&b).unwrap());
}

#[test]
fn a_wall_limit_ends_an_advance_early() {
    let rig = commits();
    let reached = rig.advance(3_600 * SECOND_NS, Duration::from_millis(20)).unwrap();
    assert!(reached > 0 && reached < 3_600 * SECOND_NS);
}

#[test]
fn rates_are_over_the_cells_own_interval() {
    let rig = commits();
    rig.advance(SECOND_NS, LONG).unwrap();
    let first = rig.collect(0).unwrap();
    rig.advance(SECOND_NS, LONG).unwrap();
    // Another cell that collects meanwhile takes nothing from it.
    rig.collect(1).unwrap();
    rig.advance(SECOND_NS, LONG).unwrap();
    let second = rig.collect(0).unwrap();
    let seconds = (second.at_ns - first.at_ns) as f64 / 1e9;
    assert_eq!(seconds, 2.0);
    let grown = sum(&second, "FL_IO_DB_BY_W") - sum(&first, "FL_IO_DB_BY_W");
    assert_eq!(sum(&second, "FL_IO_DB_BY_W_SEC"), grown / seconds);
}

#[test]
fn a_plan_without_the_flash_log_ends_the_race_in_its_cell_only() {
    let rig = commits();
    rig.advance(SECOND_NS, LONG).unwrap();
    let off = json!({
        "do": "plan", "cell": 0, "plan": { "ORCL": { "flash_log": false } }
    });
    rig.command(command(off)).unwrap();
    rig.advance(SECOND_NS / 10, LONG).unwrap();
    let (before, other) = (rig.collect(0).unwrap(), rig.collect(1).unwrap());
    rig.advance(SECOND_NS, LONG).unwrap();
    let (after, other_after) = (rig.collect(0).unwrap(), rig.collect(1).unwrap());
    assert_eq!(sum(&after, "FL_IO_W"), sum(&before, "FL_IO_W"));
    let asked = sum(&after, "FL_RQ_W") - sum(&before, "FL_RQ_W");
    let skipped = sum(&after, "FL_IO_W_SKIP_IORM_PLAN") - sum(&before, "FL_IO_W_SKIP_IORM_PLAN");
    assert!(asked > 50.0 && asked == skipped, "{asked} {skipped}");
    assert!(sum(&other_after, "FL_IO_W") > sum(&other, "FL_IO_W") + 50.0);
    assert!(!rig.facts().unwrap().cells[0].plan["ORCL"].flash_log);
    rig.command(command(json!({ "do": "plan", "cell": 0, "plan": {} }))).unwrap();
    rig.advance(SECOND_NS, LONG).unwrap();
    assert!(sum(&rig.collect(0).unwrap(), "FL_IO_W") > sum(&after, "FL_IO_W") + 50.0);
}

#[test]
fn a_dropped_cache_is_empty_and_a_new_one_fills_again() {
    let rig = updates("write-through");
    rig.advance(2 * SECOND_NS, LONG).unwrap();
    assert!(rig.facts().unwrap().cells[0].cached.held_bytes > 0);
    rig.command(command(json!({ "do": "drop-flash-cache", "cell": 0 }))).unwrap();
    let facts = rig.facts().unwrap();
    assert_eq!((facts.cells[0].flash_cache_bytes, facts.cells[0].cached.held_bytes), (0, 0));
    assert!(facts.cells[1].cached.held_bytes > 0);
    rig.advance(SECOND_NS, LONG).unwrap();
    assert_eq!(rig.facts().unwrap().cells[0].cached.held_bytes, 0);
    let create = json!({
        "do": "create-flash-cache", "cell": 0, "mode": "write-through", "size_gb": 1.0
    });
    rig.command(command(create)).unwrap();
    assert_eq!(rig.facts().unwrap().cells[0].flash_cache_bytes, 1 << 30);
    rig.advance(SECOND_NS, LONG).unwrap();
    assert!(rig.facts().unwrap().cells[0].cached.held_bytes > 0);
}

#[test]
fn what_is_dirty_is_flushed_before_it_is_dropped() {
    let rig = updates("write-back");
    rig.advance(2 * SECOND_NS, LONG).unwrap();
    let drop = json!({ "do": "drop-flash-cache", "cell": 2 });
    let refused = rig.command(command(drop.clone())).unwrap_err();
    assert!(refused.to_string().contains("flush it first"), "{refused}");
    assert!(matches!(refused, RunError::Cell(_)));
    // The load goes on, but past the cache: it gets clean and stays so.
    rig.command(command(json!({ "do": "flush", "cell": 2 }))).unwrap();
    rig.advance(20 * SECOND_NS, LONG).unwrap();
    let cached = rig.facts().unwrap().cells[2].cached;
    assert!(cached.dirty_bytes == 0 && cached.held_bytes > 0, "{cached:?}");
    rig.command(command(drop)).unwrap();
}

#[test]
fn a_restart_begins_the_counters_of_its_cell_anew() {
    let rig = commits();
    rig.advance(SECOND_NS, LONG).unwrap();
    let before = sum(&rig.collect(0).unwrap(), "FL_RQ_W");
    rig.command(command(json!({ "do": "restart", "cell": 1 }))).unwrap();
    assert_eq!(sum(&rig.collect(1).unwrap(), "FL_RQ_W"), 0.0);
    assert_eq!(sum(&rig.collect(0).unwrap(), "FL_RQ_W"), before);
}

#[test]
fn a_groups_caching_policy_is_set_in_one_cell() {
    let rig = commits();
    let none = json!({ "do": "caching", "cell": 0, "group": "DATA", "caching": "none" });
    rig.command(command(none)).unwrap();
    let cached = |cell: usize| {
        let facts = rig.facts().unwrap();
        let disks = facts.cells[cell].grid_disks.iter().filter(|disk| disk.group == "DATA");
        disks.map(|disk| disk.cached).collect::<Vec<bool>>()
    };
    assert_eq!((cached(0), cached(1)), (vec![false; 12], vec![true; 12]));
}

#[test]
fn what_cannot_be_is_refused() {
    let commit_loop = json!({ "kind": "commit-loop" });
    let refused = |text: &str| Rig::from_json(text).err().unwrap().to_string();
    assert!(refused("{}").contains("machine"));
    let mut other: Value = serde_json::from_str(&spec(&commit_loop, &json!({}))).unwrap();
    other["machine"] = json!(built_in("nvme-server").unwrap());
    assert!(refused(&other.to_string()).contains("no storage cells"));
    let settings = json!({ "cells.count": "0" });
    assert!(refused(&spec(&commit_loop, &settings)).contains("cells.count"));
    let zero = spec(&commit_loop, &json!({})).replace("\"sessions\":4", "\"sessions\":0");
    assert!(refused(&zero).contains("sessions"));
    let rig = commits();
    let far = json!({ "do": "flush", "cell": 9 });
    assert!(rig.command(command(far)).unwrap_err().to_string().contains("no cell 9"));
    assert!(serde_json::from_value::<Command>(json!({ "do": "dance" })).is_err());
    assert!(rig.collect(9).unwrap().rows.is_empty());
}

#[test]
fn sessions_stand_beside_others_without_changing_their_dice() {
    let commits = json!({ "kind": "commit-loop", "think_ms": 5.0 });
    let mut spec: Value = serde_json::from_str(&spec(&commits, &json!({}))).unwrap();
    let alone = Rig::from_json(&spec.to_string()).unwrap();
    spec["beside"] = json!([{ "sessions": 2, "workload": { "kind": "scan-jobs" } }]);
    let both = Rig::from_json(&spec.to_string()).unwrap();
    for rig in [&alone, &both] {
        rig.advance(SECOND_NS, LONG).unwrap();
    }
    assert_eq!(all(&alone, "CD_IO_BY_R_LG"), 0.0);
    assert!(all(&both, "CD_IO_BY_R_LG") > 100.0);
    // The same sessions think and ask as they did alone; they only wait a little longer.
    let (before, beside) = (all(&alone, "FL_RQ_W"), all(&both, "FL_RQ_W"));
    assert!((beside / before - 1.0).abs() < 0.2, "{before} {beside}");
    spec["beside"] = json!([{ "sessions": 0, "workload": { "kind": "scan-jobs" } }]);
    let refused = Rig::from_json(&spec.to_string()).err().unwrap();
    assert!(refused.to_string().contains("sessions"), "{refused}");
}
