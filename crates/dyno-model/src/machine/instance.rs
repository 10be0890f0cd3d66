//! Rows of a database instance, in `[database]` and in `[databases.NAME]`.

use super::schema::{self, Row};
use crate::database::{BufferParameters, InstanceParameters, RedoParameters, SchedulerParameters};

/// Returns the rows of an instance.
pub fn instance_rows(prefix: &str, has_cells: bool) -> Vec<Row> {
    let instance = InstanceParameters { cells: has_cells, ..InstanceParameters::default() };
    let InstanceParameters { scheduler, redo, buffers, .. } = &instance;
    let nested = ["scheduler", "redo", "buffers"];
    let mut all = schema::rows(prefix, &instance, InstanceParameters::TABLE, &nested);
    let below = |name: &str| format!("{prefix}.{name}");
    all.extend(schema::rows(&below("scheduler"), scheduler, SchedulerParameters::TABLE, &[]));
    all.extend(schema::rows(&below("redo"), redo, RedoParameters::TABLE, &[]));
    all.extend(schema::rows(&below("buffers"), buffers, BufferParameters::TABLE, &[]));
    all
}
