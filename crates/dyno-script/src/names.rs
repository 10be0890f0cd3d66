//! Variables of the scripts of one arm, and where they are set and read.

use std::collections::HashSet;

use crate::source::Source;
use crate::{ScriptError, Symbols, VarId};

/// Slots of variables, with the places where they are set and read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub(crate) symbols: Symbols,
    assigned: HashSet<VarId>,
    /// Prefixes of `\gset` and `\aset`.
    prefixes: Vec<String>,
    /// First place where each variable is read, with the error to report if nothing sets it.
    reads: Vec<(VarId, ScriptError)>,
    read: HashSet<VarId>,
}

impl Names {
    /// Returns the slot of a variable, and records that a command sets it.
    pub(crate) fn assign(&mut self, name: &str) -> VarId {
        let var = self.symbols.intern(name);
        self.assigned.insert(var);
        var
    }

    /// Records that the columns of a result are stored under names with this prefix.
    pub(crate) fn assign_columns(&mut self, prefix: &str) {
        self.prefixes.push(prefix.to_owned());
    }

    /// Returns the slot of a variable, and records that it is read at `offset`.
    pub(crate) fn read(&mut self, source: &Source, name: &str, offset: usize) -> VarId {
        let var = self.symbols.intern(name);
        if self.read.insert(var) {
            let message = format!("nothing sets the variable :{name}");
            let hint = format!("add \\set {name}, or give it a value where the run is described");
            self.reads.push((var, source.error(offset, message, hint)));
        }
        var
    }

    /// Returns the slot of a name that may not be a variable, without recording a read.
    pub(crate) fn mention(&mut self, name: &str) -> VarId {
        self.symbols.intern(name)
    }

    /// Returns an error for each variable that is read but cannot be set, at the first place that reads it.
    pub(crate) fn unassigned(&self) -> Vec<ScriptError> {
        let lost = self.reads.iter().filter(|(var, _)| !self.is_settable(*var));
        lost.map(|(_, error)| error.clone()).collect()
    }

    fn is_settable(&self, var: VarId) -> bool {
        let name = self.symbols.name(var);
        let stored = |prefix: &String| name.len() > prefix.len() && name.starts_with(&**prefix);
        self.assigned.contains(&var) || self.prefixes.iter().any(stored)
    }
}
