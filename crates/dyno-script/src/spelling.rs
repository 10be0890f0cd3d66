//! Search for the nearest known name, for messages about unknown ones.

/// Returns the candidate with the fewest differences from `name`, if it is similar enough to be what the author meant.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let tolerance = 1 + name.chars().count() / 4;
    candidates
        .into_iter()
        .map(|candidate| (distance(&name, candidate), candidate))
        .filter(|(edits, _)| *edits <= tolerance)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Returns the Levenshtein distance: insertions, deletions and replacements of characters.
fn distance(left: &str, right: &str) -> usize {
    const LONGEST: usize = 64; // longer words are truncated: no name is that long
    let right: Vec<char> = right.chars().take(LONGEST).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, from) in left.chars().take(LONGEST).enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (place, to) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distance_counts_edits() {
        for (left, right, edits) in [("", "", 0), ("set", "set", 0), ("sset", "set", 1)] {
            assert_eq!(distance(left, right), edits, "{left} {right}");
        }
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn far_names_are_not_suggested() {
        let known = ["set", "sleep", "endif"];
        assert_eq!(nearest("SLEP", known), Some("sleep"));
        assert_eq!(nearest("ednif", known), Some("endif"));
        assert_eq!(nearest("copy", known), None);
    }
}
