//! Pages that statements reference by a key.

use serde::{Deserialize, Serialize};

/// Pages of a table or an index, in groups of equal popularity.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Relation {
    /// Name of the table or index.
    pub name: String,
    /// Number of pages of each group.
    pub pages: Vec<u64>,
    /// Share of the relation's references that go to each group.
    pub share: Vec<f64>,
}

impl Relation {
    /// Checks that each group has pages and a share.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let sound = self.share.iter().all(|share| share.is_finite() && *share >= 0.0);
        if self.pages.is_empty() || self.pages.len() != self.share.len() || self.pages.contains(&0) || !sound {
            return Err(format!("each group of relation {:?} must have pages and a share from 0", self.name));
        }
        Ok(())
    }
}
