//! Tests that every parameter of a device has a row with its meaning and source, and that errors in files say what is
//! wrong.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;

use dyno_model::cell::iorm::{Directive, IormParameters};
use dyno_model::cell::parameters::{FlashCacheParameters, FlashLogParameters, NetworkParameters, ScanParameters};
use dyno_model::cell::{GroupParameters, RackParameters};
use dyno_model::database::{BufferParameters, InstanceParameters, RedoParameters, SchedulerParameters};
use dyno_model::device::Parameter;
use dyno_model::device::cache::CacheParameters;
use dyno_model::device::disk::DiskParameters;
use dyno_model::device::empirical::{EmpiricalParameters, Regime};
use dyno_model::device::flash::FlashParameters;
use dyno_model::device::lun::ChannelParameters;
use dyno_model::device::raid5::Raid5Parameters;
use dyno_model::device::volume::VolumeParameters;
use dyno_model::kernel::sample::Times;
use dyno_model::postgres::PostgresParameters;
use dyno_model::workload::{CommitLoop, KeyLookup, ScanJobs, SortLoad, UpdateLoop};
use serde::Serialize;

fn check<T: Serialize>(parameters: &T, table: &[Parameter]) {
    let value = toml::Value::try_from(parameters).unwrap();
    let keys: BTreeSet<String> = value.as_table().unwrap().keys().cloned().collect();
    let rows: BTreeSet<String> = table.iter().map(|row| row.key.to_owned()).collect();
    assert_eq!(keys, rows);
    assert_eq!(rows.len(), table.len(), "a key twice");
    assert!(table.iter().all(|row| !row.meaning.is_empty() && !row.source.is_empty()));
}

#[test]
fn every_parameter_has_a_meaning_and_a_source() {
    check(&DiskParameters::default(), DiskParameters::TABLE);
    check(&FlashParameters::default(), FlashParameters::TABLE);
    check(&CacheParameters::default(), CacheParameters::TABLE);
    check(&ChannelParameters::default(), ChannelParameters::TABLE);
    check(&Raid5Parameters::default(), Raid5Parameters::TABLE);
    check(&RedoParameters::default(), RedoParameters::TABLE);
    check(&BufferParameters::default(), BufferParameters::TABLE);
    check(&InstanceParameters::default(), InstanceParameters::TABLE);
    check(&SchedulerParameters::default(), SchedulerParameters::TABLE);
    check(&PostgresParameters::default(), PostgresParameters::TABLE);
    check(&CommitLoop::default(), CommitLoop::TABLE);
    check(&UpdateLoop::default(), UpdateLoop::TABLE);
    check(&KeyLookup::default(), KeyLookup::TABLE);
    check(&ScanJobs::default(), ScanJobs::TABLE);
    check(&SortLoad::default(), SortLoad::TABLE);
    check(&RackParameters::default(), RackParameters::TABLE);
    check(&RackParameters::x3(), RackParameters::TABLE);
    check(&NetworkParameters::default(), NetworkParameters::TABLE);
    check(&FlashLogParameters::default(), FlashLogParameters::TABLE);
    check(&FlashCacheParameters::default(), FlashCacheParameters::TABLE);
    check(&ScanParameters::default(), ScanParameters::TABLE);
    check(&IormParameters::default(), IormParameters::TABLE);
    check(&Directive::default(), Directive::TABLE);
    check(&GroupParameters::default(), GroupParameters::TABLE);
    let times = Times::Constant { us: 1.0 };
    let regimes =
        vec![Regime { read: times.clone(), write: times, stay_ms: 0.0, write_us_per_kb: 0.0, time_factor: 0.0 }];
    check(&VolumeParameters::default(), VolumeParameters::TABLE);
    let empirical = EmpiricalParameters { capacity_gb: 1.0, servers: 1, regimes };
    check(&empirical, EmpiricalParameters::TABLE);
}

#[test]
fn a_file_names_what_it_changes_and_a_wrong_key_is_named() {
    let disk: DiskParameters = toml::from_str("rotation_rpm = 7200\nscheduler = \"elevator\"").unwrap();
    assert_eq!((disk.rotation_rpm, disk.zones), (7_200.0, DiskParameters::default().zones));
    let error = toml::from_str::<DiskParameters>("rpm = 7200").unwrap_err().to_string();
    assert!(error.contains("`rpm`") && error.contains("rotation_rpm"), "{error}");
    let error = toml::from_str::<FlashParameters>("start = \"used\"").unwrap_err().to_string();
    assert!(error.contains("steady"), "{error}");
}
