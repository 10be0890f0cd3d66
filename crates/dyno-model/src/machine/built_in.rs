//! Built-in machines.

use super::MachineError;
use super::error::choices;

/// Name and text of each machine.
const MACHINES: [(&str, &str); 6] = [
    ("exadata-x2", include_str!("../../machines/exadata-x2.toml")),
    ("exadata-x2-shared", include_str!("../../machines/exadata-x2-shared.toml")),
    ("exadata-x3", include_str!("../../machines/exadata-x3.toml")),
    ("nvme-server", include_str!("../../machines/nvme-server.toml")),
    ("san", include_str!("../../machines/san.toml")),
    ("sas-and-flash", include_str!("../../machines/sas-and-flash.toml")),
];

/// Returns the names of the built-in machines.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, _)| *name)
}

/// Returns the text of a built-in machine.
///
/// # Errors
/// There is no machine of that name.
pub fn built_in(name: &str) -> Result<&'static str, MachineError> {
    let found = MACHINES.iter().find(|(own, _)| *own == name).map(|(_, text)| *text);
    found.ok_or_else(|| {
        let names: Vec<&str> = built_in_names().collect();
        let message = format!("there is no machine `{name}`");
        MachineError::at(format!("model:{name}"), message, choices(name, &names))
    })
}
