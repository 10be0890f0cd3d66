//! Python binding `dbdyno._core`; no other crate depends on Python.
//!
//! Everything here is thin: it converts Python values, releases the interpreter lock, calls another crate, and
//! converts the result. Errors are raised in Python as `dbdyno.base.errors.*`.

// Doc comments of items that Python sees are Python docstrings, and arguments arrive as owned Python values.
#![allow(clippy::doc_markdown, clippy::needless_pass_by_value)]

mod catalogue;
mod device;
#[cfg(target_os = "linux")]
mod device_mount;
#[cfg(not(target_os = "linux"))]
#[path = "device_mount_elsewhere.rs"]
mod device_mount;
mod distributions;
mod errors;
mod evidence;
mod flash;
mod line;
mod literals;
mod load;
mod model;
mod mover;
mod postgres_model;
mod probe;
mod proxy;
mod rack;
#[cfg(target_os = "linux")]
mod record;
#[cfg(not(target_os = "linux"))]
#[path = "record_elsewhere.rs"]
mod record;
mod stats;
mod summary;
mod trace;
mod values;

use pyo3::prelude::*;

/// The Rust core of dbdyno.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::catalogue::{wait_class, wait_classes, wait_events};
    #[pymodule_export]
    use crate::device::{device_alone_ns, device_replay, device_texts};
    #[pymodule_export]
    use crate::device_mount::DeviceMount;
    #[pymodule_export]
    use crate::distributions::{
        binomial_cdf, binomial_sf, chi2_log10_p, chi2_quantile, f_log10_p, kolmogorov_log10_p, normal_cdf,
        normal_log10_p, normal_quantile, prob_r, prob_r_log10, t_cdf, t_log10_p, t_power, t_quantile,
    };
    #[pymodule_export]
    use crate::evidence::{numbered_files, write_calls, write_metrics, write_waits};
    #[pymodule_export]
    use crate::flash::FlashProbe;
    #[pymodule_export]
    use crate::line::LinePort;
    #[pymodule_export]
    use crate::literals::without_literals;
    #[pymodule_export]
    use crate::load::{
        Drawer, Load, busy_ratio, check_script, mariadb_errors, mariadb_signed, placement, reported_error, wake_cost_ns,
    };
    #[pymodule_export]
    use crate::model::{ModelRun, model_calibrate, model_check, model_machine, model_machines};
    #[pymodule_export]
    use crate::mover::{MoveBytes, MoveJob, move_describe, move_groups, move_read_back};
    #[pymodule_export]
    use crate::postgres_model::{model_misses, model_postgres};
    #[pymodule_export]
    use crate::probe::{Probe, recover_probe};
    #[pymodule_export]
    use crate::proxy::{LogJob, Proxy, Replay, captured, captured_shapes, captured_statements};
    #[pymodule_export]
    use crate::rack::ModelRack;
    #[pymodule_export]
    use crate::record::{Recorder, SessionReader, read_cost, trap_cost_ns, watch_cost_ns};
    #[pymodule_export]
    use crate::stats::{spearman_orders, stats_arrays, stats_fit, stats_pairs, stats_parquet};
    #[pymodule_export]
    use crate::summary::{latencies, summarise};
    #[pymodule_export]
    use crate::trace::{TraceJob, profile_run, write_trace};
}
