//! Links between parts: resolves the names, counts the devices and checks the links.

use super::error::choices;
use super::kind::PartKind;
use super::sections::Part;
use super::{Machine, MachineError};
use crate::device::raid5::Raid5;

/// Meaning of a name in a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// All devices of a part.
    All(&'a Part),
    /// One device of a part.
    One(&'a Part, u64),
}

impl<'a> Named<'a> {
    pub fn part(self) -> &'a Part {
        match self {
            Self::All(part) | Self::One(part, _) => part,
        }
    }
}

impl Machine {
    /// Returns a part by its name.
    pub(super) fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.name == name)
    }

    /// Returns the meaning of a name: a part, or one of its devices.
    pub(super) fn named(&self, name: &str) -> Option<Named<'_>> {
        if let Some(part) = self.part(name) {
            return Some(Named::All(part));
        }
        let (name, number) = name.rsplit_once('.')?;
        Some(Named::One(self.part(name)?, number.parse().ok()?))
    }

    /// Returns the number of devices of a part.
    pub(super) fn count(&self, part: &Part) -> u64 {
        let given = self.whole(&part.path("count"));
        given.unwrap_or_else(|| self.below(part))
    }

    /// Returns the number of devices below a part.
    pub(super) fn below(&self, part: &Part) -> u64 {
        let names = self.names(&part.path("over"));
        let counts = names.iter().filter_map(|name| self.named(name)).map(|named| match named {
            Named::All(part) => self.count(part),
            Named::One(..) => 1,
        });
        counts.sum()
    }

    pub(super) fn check_links(&self) -> Result<(), MachineError> {
        for part in &self.parts {
            for key in ["over", "channel"] {
                self.check_names(part, key)?;
            }
        }
        for part in &self.parts {
            self.check_cycle(part, &mut Vec::new())?;
        }
        for part in self.parts.iter().filter(|part| part.kind.is_over()) {
            self.check_count(part)?;
        }
        for (key, needed) in [("redo", true), ("data", true), ("temp", false)] {
            self.check_place(key, needed)?;
        }
        Ok(())
    }

    /// Checks that the names of one parameter are parts of the right kind.
    fn check_names(&self, part: &Part, key: &str) -> Result<(), MachineError> {
        let path = part.path(key);
        let place = self.place(&path);
        let names = self.names(&path);
        let is_right = |part: &Part| (part.kind == PartKind::Channel) == (key == "channel");
        if names.is_empty() && key == "over" && part.kind.is_over() {
            let place = format!("line {}, {}", part.line, part.prefix());
            let message = format!("a {} stands over something", part.kind);
            return Err(MachineError::at(place, message, "add `over = \"NAME\"`"));
        }
        for name in names {
            self.check_name(&place, &name, is_right)?;
        }
        Ok(())
    }

    fn check_name(&self, place: &str, name: &str, is_right: impl Fn(&Part) -> bool) -> Result<(), MachineError> {
        let Some(named) = self.named(name).filter(|named| is_right(named.part())) else {
            let fit = self.parts.iter().filter(|part| is_right(part));
            let mut names: Vec<&str> = fit.map(|part| part.name.as_str()).collect();
            if place.contains("storage.") {
                names.extend(self.groups());
            }
            let message = match self.named(name) {
                Some(named) => format!("`{name}` is a {}", named.part().kind),
                None => format!("there is no device `{name}`"),
            };
            return Err(MachineError::at(place, message, choices(name, &names)));
        };
        if let Named::One(part, number) = named
            && part.kind != PartKind::Channel
            && number >= self.whole(&part.path("count")).unwrap_or(u64::MAX)
        {
            let message = format!("`{name}`: there are only so many of {}", part.name);
            let last = self.whole(&part.path("count")).unwrap_or(1) - 1;
            let step = format!("use {0}.0 to {0}.{last}", part.name);
            return Err(MachineError::at(place, message, step));
        }
        Ok(())
    }

    /// Checks that no part is over itself, directly or through other parts.
    fn check_cycle<'a>(&'a self, part: &'a Part, above: &mut Vec<&'a str>) -> Result<(), MachineError> {
        above.push(&part.name);
        for name in self.names(&part.path("over")) {
            let Some(below) = self.named(&name).map(Named::part) else { continue };
            if let Some(from) = above.iter().position(|seen| *seen == below.name) {
                let mut circle = above[from..].to_vec();
                circle.push(&below.name);
                let message = format!("devices stand over one another: {}", circle.join(" over "));
                let place = self.place(&part.path("over"));
                return Err(MachineError::at(place, message, "put one of them on a disk"));
            }
            self.check_cycle(below, above)?;
        }
        above.pop();
        Ok(())
    }

    fn check_count(&self, part: &Part) -> Result<(), MachineError> {
        let (count, below) = (self.count(part), self.below(part));
        let place = self.place(&part.path("count"));
        if part.kind.is_single() && count != below {
            let message = format!("{count} of a {} over {below} devices", part.kind);
            let step = format!("write count = {below}, or leave count out: a {} has one device below", part.kind);
            return Err(MachineError::at(place, message, step));
        }
        if !part.kind.is_single() && below % count != 0 {
            let message = format!("{below} devices cannot be shared out to {count}");
            let step = "choose a count that divides the number of devices below";
            return Err(MachineError::at(place, message, step));
        }
        if part.kind == PartKind::Raid5 && below / count < Raid5::LEAST as u64 {
            let place = format!("line {}, {}", part.line, part.prefix());
            let message = format!("a raid5 stands over {} devices or more, found {}", Raid5::LEAST, below / count);
            return Err(MachineError::at(place, message, "name more devices, or set their count"));
        }
        Ok(())
    }

    fn check_place(&self, key: &str, needed: bool) -> Result<(), MachineError> {
        let path = format!("storage.{key}");
        let names = self.names(&path);
        if names.is_empty() && needed {
            let message = format!("a machine says where its {key} lies");
            let step = format!("add `{key} = \"NAME\"` to [storage]");
            return Err(MachineError::at("storage", message, step));
        }
        let groups = self.groups();
        for name in names.iter().filter(|name| !groups.contains(&name.as_str())) {
            self.check_name(&self.place(&path), name, |part| part.kind != PartKind::Channel)?;
        }
        Ok(())
    }
}
