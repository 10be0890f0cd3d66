//! Errors in a machine: what is wrong, where, and what would be valid.

/// Error in a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}{}", self.prefix(), self.suffix())]
pub struct MachineError {
    /// What was found and what was expected.
    pub message: String,
    /// Line and key; empty if the error concerns the whole machine.
    pub place: String,
    /// What is allowed, or what to do; may be empty.
    pub next_step: String,
}

impl MachineError {
    /// Returns an error about a place.
    pub(super) fn at(place: impl Into<String>, message: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into(), next_step: next_step.into() }
    }

    fn prefix(&self) -> String {
        if self.place.is_empty() { String::new() } else { format!("{}: ", self.place) }
    }

    fn suffix(&self) -> String {
        if self.next_step.is_empty() { String::new() } else { format!("\n  next: {}", self.next_step) }
    }
}

/// Returns the name in `names` that is most similar to `name`; `None` if no name is similar.
pub(super) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let far = |other: &'a str| {
        let is_part = name.len() > 2 && other.contains(name);
        (if is_part { 1 } else { distance(name, other) }, other)
    };
    let near = names.into_iter().map(far).min()?;
    (near.0 <= 1 + name.chars().count() / 3).then_some(near.1)
}

/// Returns a sentence with the most similar name, then all that are allowed.
pub(super) fn choices(name: &str, names: &[&str]) -> String {
    let near = nearest(name, names.iter().copied());
    let meant = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let shown: Vec<&str> = names.iter().copied().take(40).collect();
    let more = if names.len() > 40 { format!(" and {} more", names.len() - 40) } else { String::new() };
    format!("{meant}allowed: {}{more}", shown.join(", "))
}

/// Returns the edit distance: letters to insert, drop or replace to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_one_that_might_have_been_meant() {
        assert_eq!(distance("kitten", "sitting"), 3);
        let names = ["rotation_rpm", "seek_track_ms", "zones"];
        assert_eq!(nearest("rotaton_rpm", names), Some("rotation_rpm"));
        assert_eq!(nearest("rotation", names), Some("rotation_rpm"));
        assert_eq!(nearest("zonse", names), Some("zones"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
