//! Tests machines from text: refusals and their messages, settings, stacks, and the built-in machines.
#![allow(clippy::unwrap_used, missing_docs)]

use std::rc::Rc;

use dyno_model::device::{Request, start};
use dyno_model::kernel::{Simulation, Stream, Streams};
use dyno_model::machine::{Machine, MachineError, built_in, built_in_names};

/// Returns the text of a machine with one disk and the sections `more`.
fn small(more: &str) -> String {
    format!(
        "title = \"small\"\n[devices.platter]\nkind = \"disk\"\n{more}\n[storage]\nredo = \"platter\"\ndata = \"platter\"\n"
    )
}

fn refused(text: &str) -> MachineError {
    Machine::parse(text).unwrap_err()
}

/// Checks that the error has these words in its place, its message and its next step, respectively.
fn assert_refused(text: &str, place: &str, message: &str, step: &str) {
    let error = refused(text);
    println!("{error}");
    assert!(error.place.contains(place), "place: {}", error.place);
    assert!(error.message.contains(message), "message: {}", error.message);
    assert!(error.next_step.contains(step), "advice: {}", error.next_step);
}

#[test]
fn a_value_stands_bare_or_with_its_source() {
    let text = small("rotation_rpm = { value = 7200, source = \"data sheet\" }\nzones = 8");
    let described = Machine::parse(&text).unwrap().describe();
    let line = |path: &str| described.parameters.iter().find(|line| line.path == path).unwrap();
    let told = line("devices.platter.rotation_rpm");
    assert_eq!((told.source.as_str(), told.unit.as_str(), told.given), ("data sheet", "rpm", true));
    assert_eq!(told.value, Some(toml::Value::Float(7_200.0)));
    assert_eq!(told.default, Some(toml::Value::Float(15_000.0)));
    assert_eq!(line("devices.platter.zones").source, "chosen by the machine");
    let default = line("devices.platter.inner_mb_s");
    assert!(!default.given && default.source.contains("data sheets"));
}

#[test]
fn a_wrong_key_is_named_with_its_line_and_the_nearest_right_one() {
    assert_refused(
        &small("rotaton_rpm = 7200"),
        "line 4, devices.platter.rotaton_rpm",
        "a disk has no `rotaton_rpm`",
        "did you mean `rotation_rpm`? allowed: ",
    );
    assert_refused(&small("[databse]\ncores = 4"), "line 4", "`databse`", "database");
    assert_refused(&small("[database]\ncors = 4"), "line 5, database.cors", "`cors`", "`cores`");
    assert_refused(&small("[devices.x]\nkind = \"dsk\""), "line 5", "\"dsk\"", "`disk`");
    assert_refused(&small("[devices.x]\nzones = 3"), "line 4, devices.x", "has no kind", "disk");
    let beside = "zones = { value = 3, sauce = \"x\" }";
    assert_refused(&small(beside), "line 4", "`sauce`", "value, source");
}

#[test]
fn a_wrong_type_and_a_value_out_of_range_say_what_is_expected() {
    for (given, expected) in [
        ("zones = \"many\"", "a whole number from 1 to 10000, found \"many\""),
        ("zones = 0", "a whole number from 1 to 10000, found 0"),
        ("zones = 2.5", "a whole number"),
        ("rotation_rpm = true", "a number from 1"),
        ("rotation_rpm = -3", "a number from 1 to 1000000, found -3"),
        ("rotation_rpm = nan", "a number"),
        ("outer_mb_s = 0", "a number from 0.001"),
        ("scheduler = 3", "a word in quotes, found 3"),
        ("scheduler = \"lift\"", "unknown variant `lift`, expected one of `fifo`"),
    ] {
        assert_refused(&small(given), "line 4, devices.platter.", expected, "");
    }
}

#[test]
fn text_that_is_no_toml_is_refused_with_its_line() {
    assert_refused(&small("zones = = 3"), "line 4", "", "TOML");
    assert_refused("[devices]\n", "line 1", "title", "title = ");
    assert_refused("title = 3", "line 1", "a title must be text", "");
}

#[test]
fn a_dangling_name_a_cycle_and_a_wrong_count_are_named() {
    let over = |name: &str| small(&format!("[devices.memory]\nkind = \"cache\"\nover = \"{name}\""));
    assert_refused(&over("plater"), "line 6, devices.memory.over", "`plater`", "`platter`");
    assert_refused(&over("memory"), "line 6", "memory over memory", "");
    let two = "[devices.a]\nkind = \"stripe\"\nover = \"b\"\n[devices.b]\nkind = \"mirror\"\nover = [\"a\"]";
    assert_refused(&small(two), "over", "a over b over a", "");
    let count = "count = 8\n[devices.m]\nkind = \"cache\"\nover = \"platter\"\ncount = 4";
    assert_refused(&small(count), "line 8, devices.m.count", "4 of a cache over 8", "count = 8");
    let count = "count = 8\n[devices.m]\nkind = \"stripe\"\nover = \"platter\"\ncount = 3";
    assert_refused(&small(count), "count", "8 devices cannot be shared out to 3", "divides");
    assert_refused(&over("platter.1"), "over", "`platter.1`", "platter.0 to platter.0");
    let channel = "[devices.c]\nkind = \"channel\"\n[devices.m]\nkind = \"cache\"\nover = \"c\"";
    assert_refused(&small(channel), "over", "`c` is a channel", "platter");
    let empty = "[devices.m]\nkind = \"mirror\"";
    assert_refused(&small(empty), "line 4, devices.m", "stands over something", "over = ");
    assert_refused(&small("").replace("redo = \"platter\"\n", ""), "storage", "redo", "redo = ");
}

#[test]
fn a_setting_is_a_path_or_an_unambiguous_end_of_one() {
    let text = small("[devices.other]\nkind = \"disk\"");
    let mut machine = Machine::parse(&text).unwrap();
    assert_eq!(machine.resolve("cores").unwrap(), "database.cores");
    assert_eq!(machine.resolve("other.zones").unwrap(), "devices.other.zones");
    let error = machine.resolve("zones").unwrap_err();
    assert!(error.next_step.contains("devices.platter.zones, devices.other.zones"), "{error}");
    assert!(machine.resolve("coers").unwrap_err().next_step.contains("database.cores"));
    machine.set("other.zones", "4").unwrap();
    machine.set("other.scheduler", "fifo").unwrap();
    machine.set("storage.redo", "other").unwrap();
    let described = machine.describe();
    let line = |path: &str| described.parameters.iter().find(|line| line.path == path).unwrap();
    assert_eq!(line("devices.other.zones").value, Some(toml::Value::Integer(4)));
    assert_eq!(line("storage.redo").source, "a setting of the run");
}

/// A refused setting changes nothing.
#[test]
fn a_setting_that_cannot_be_leaves_the_machine_as_it_was() {
    let mut machine = Machine::parse(&small("")).unwrap();
    let before = serde_json::to_string(&machine.describe()).unwrap();
    for (name, value) in [("storage.redo", "nowhere"), ("cores", "many"), ("cores", "0"), ("scheduler", "lift")] {
        assert!(machine.set(name, value).is_err(), "{name} = {value}");
    }
    assert_eq!(serde_json::to_string(&machine.describe()).unwrap(), before);
}

/// Regression: the limit for flash was checked between two settings, when 50 cells still had 16 modules each.
#[test]
fn settings_that_fit_only_together_are_taken_together() {
    let mut machine = Machine::parse(built_in("exadata-x2").unwrap()).unwrap();
    let before = serde_json::to_string(&machine.describe()).unwrap();
    assert!(machine.set("cells.count", "50").is_err());
    assert!(machine.set_all([("cells.count", "50"), ("cells.modules", "16")]).is_err());
    assert!(machine.set_all([("cells.modules", "4"), ("cells.count", "many")]).is_err());
    assert_eq!(serde_json::to_string(&machine.describe()).unwrap(), before);
    machine.set_all([("cells.count", "50"), ("cells.modules", "4")]).unwrap();
}

/// The machine has 4 stripe sets of 2 mirrors of 2 disks each on 3 channels, and its log is on one of these stripe
/// sets.
#[test]
fn counted_devices_stack_neighbours_together() {
    let text = small(
        "count = 16\ncapacity_gb = 10\n[devices.pair]\nkind = \"mirror\"\nover = \"platter\"\ncount = 8\n\
         [devices.port]\nkind = \"channel\"\ncount = 3\n\
         [devices.unit]\nkind = \"lun\"\nover = \"pair\"\nchannel = \"port\"\n\
         [devices.set]\nkind = \"stripe\"\nover = \"unit\"\ncount = 4\nstripe_kb = 64",
    );
    let text = text.replace("redo = \"platter\"\ndata = \"platter\"", "redo = \"set.3\"\ndata = \"set\"");
    let machine = Machine::parse(&text).unwrap();
    let simulation = Simulation::new(1);
    let built = machine.build(&simulation, Rc::new(())).unwrap();
    let storage = built.instance.storage();
    assert_eq!(storage.data.capacity_bytes(), 80_000_000_000);
    assert_eq!(storage.redo[0].capacity_bytes(), 20_000_000_000);
    // The second piece of set 3 lies on unit 7, that is pair 7, disks 14 and 15, by channel 7 mod 3.
    let (sim, redo) = (simulation.sim().clone(), Rc::clone(&storage.redo[0]));
    simulation.spawn("write", async move {
        start(&sim, &*redo, Request::write(64 << 10, 512)).await;
    });
    simulation.run().unwrap();
    let busy: Vec<String> =
        built.reports().into_iter().filter(|report| report.arrivals > 0).map(|report| report.name).collect();
    assert_eq!(busy, ["unit.7", "port.1", "platter.14", "platter.15"]);
}

/// If a number of a built-in machine replaces a default that has a source, the number has a source as well.
#[test]
fn built_in_machines_say_where_their_numbers_come_from() {
    for name in built_in_names() {
        let machine = Machine::parse(built_in(name).unwrap()).unwrap();
        let described = machine.describe();
        for line in &described.parameters {
            let number = line.value.as_ref().is_some_and(|value| value.is_integer() || value.is_float());
            let differs = line.default.is_some() && line.value != line.default;
            let told = line.source != "chosen by the machine" && !line.source.is_empty();
            assert!(!(number && differs) || told, "{name}: {} has no source", line.path);
        }
        let simulation = Simulation::new(1);
        machine.build(&simulation, Rc::new(())).unwrap();
    }
    assert!(built_in("sas").unwrap_err().next_step.contains("sas-and-flash"));
}

/// Settings drawn from their ranges, including the extremes, are refused or give a machine, but never cause a panic.
#[test]
fn no_setting_of_a_built_in_machine_breaks_it() {
    for (number, name) in built_in_names().enumerate() {
        println!("{name}: seed {number}");
        let machine = Machine::parse(built_in(name).unwrap()).unwrap();
        let mut dice = Streams::new(number as u64).named("settings");
        for _ in 0..60 {
            let mut changed = machine.clone();
            let described = machine.describe();
            for _ in 0..=dice.below(3) {
                let at = dice.below(described.parameters.len() as u64) as usize;
                let path = &described.parameters[at].path;
                // Devices by the thousand, and cards too large to fill, take long, no more.
                if path.ends_with("count") || path.ends_with("capacity_mb") || path.ends_with("dies") {
                    continue;
                }
                let text = value(&mut dice);
                let _ = changed.set(path, &text);
            }
            let _ = changed.build(&Simulation::new(1), Rc::new(()));
        }
    }
}

fn value(dice: &mut Stream) -> String {
    match dice.below(8) {
        0 => "0".into(),
        1 => "1".into(),
        2 => "1e15".into(),
        3 => "true".into(),
        4 => "steady".into(),
        5 => format!("{}", dice.below(1 << 20)),
        6 => "0.5".into(),
        _ => format!("{}", 1 + dice.below(64)),
    }
}

/// A structure is one value, whether it is written inline or as a table.
#[test]
fn a_structure_is_one_parameter() {
    let cells = |log: &str| format!("title = \"x\"\n[cells]\n{log}\n[storage]\nredo = \"RECO\"\ndata = \"DATA\"\n");
    let times = toml::Value::try_from(toml::toml! { kind = "exponential"
    mean_us = 5.0 });
    for log in [
        "[cells.flash_log]\ncommon_cause = { kind = \"exponential\", mean_us = 5.0 }",
        "[cells.flash_log.common_cause]\nkind = \"exponential\"\nmean_us = 5.0",
    ] {
        let machine = Machine::parse(&cells(log)).unwrap();
        let described = machine.describe();
        let path = "cells.flash_log.common_cause";
        let line = described.parameters.iter().find(|line| line.path == path).unwrap();
        assert_eq!(line.value, times.clone().ok());
        let names: Vec<&str> = described.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["DATA", "RECO", "cells", "cells.disk", "cells.flash"]);
    }
    let wrong = cells("[cells.flash_log.common_cause]\nkind = \"exponentail\"");
    assert_refused(&wrong, "line 3", "exponentail", "");
}

/// If a machine defines groups, it has no others; otherwise it has DATA and RECO.
#[test]
fn groups_of_cells_are_those_given() {
    let text = "title = \"x\"\n[cells.groups.FAST]\non = \"flash\"\nsize_gb = 5\n[storage]\nredo = \"FAST\"\ndata = \"FAST\"\n";
    let mut machine = Machine::parse(text).unwrap();
    assert_eq!(machine.rack().unwrap().unwrap().groups.len(), 1);
    machine.set("redundancy", "high").unwrap();
    let rack = machine.rack().unwrap().unwrap();
    assert_eq!((rack.groups["FAST"].redundancy.copies(), rack.groups["FAST"].size_gb), (3, 5.0));
    let error = refused(&text.replace("data = \"FAST\"", "data = \"FASD\""));
    assert!(error.next_step.contains("`FAST`"), "{error}");
    let plain = "title = \"x\"\n[cells]\n[storage]\nredo = \"RECO\"\ndata = \"DATA\"\n";
    let mut machine = Machine::parse(plain).unwrap();
    machine.set("cells.groups.DATA.redundancy", "high").unwrap();
    let groups = machine.rack().unwrap().unwrap().groups;
    assert_eq!((groups["DATA"].size_gb, groups["RECO"].size_gb), (430.0, 108.0));
}

/// A measured device is read as one unit, and its errors still name their line.
#[test]
fn a_measured_device_is_read_from_its_regimes() {
    let regimes = "regimes = [{ read = { kind = \"constant\", us = 80 }, write = { kind = \"lognormal\", median_us = 60, sigma = 0.3 } }]";
    let text = small(&format!("[devices.m]\nkind = \"empirical\"\ncapacity_gb = 1\nservers = 2\n{regimes}"));
    let text = text.replace("redo = \"platter\"", "redo = \"m\"");
    let machine = Machine::parse(&text).unwrap();
    let built = machine.build(&Simulation::new(1), Rc::new(())).unwrap();
    assert_eq!(built.instance.storage().redo[0].capacity_bytes(), 1_000_000_000);
    assert_refused(&text.replace("lognormal", "lognormale"), "line 8, devices.m.regimes", "`lognormale`", "");
    assert_refused(&text.replace("capacity_gb = 1\n", ""), "line 4, devices.m", "`capacity_gb`", "");
    assert_refused(&text.replace("servers", "server"), "line 7", "an empirical device has no", "`servers`");
}
