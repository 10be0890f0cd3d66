//! Report of a job on all its files together, as JSON.

use serde_json::{Map, Value as Json, json};

use super::super::accounting::Account;
use super::super::check::{FileReport, account_json};
use super::super::refusal::Refusal;
use super::options::wrong;
use super::{JobError, Outcome};

/// Report on all files together.
pub(super) struct JobReport {
    files: Vec<FileReport>,
    refused: Vec<Json>,
    first_refusal: Option<JobError>,
}

fn refusal_json(refusal: &Refusal) -> Json {
    json!({
        "path": refusal.path().map(|path| path.to_string_lossy()),
        "sentence": refusal.to_string(),
        "next_step": refusal.next_step(),
    })
}

impl JobReport {
    pub(super) fn new(refusals: Vec<Refusal>) -> Self {
        let refused = refusals.iter().map(refusal_json).collect();
        let first_refusal = refusals.into_iter().next().map(JobError::from);
        Self { files: Vec::new(), refused, first_refusal }
    }

    /// Returns the result of a file. A refusal is noted and gives `None`; any other error ends the job.
    pub(super) fn good<T>(&mut self, outcome: Outcome<T>) -> Result<Option<T>, JobError> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(JobError::Refused { refusal }) => {
                self.refused.push(refusal_json(&refusal));
                self.first_refusal.get_or_insert(JobError::Refused { refusal });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn refuse(&mut self, error: &JobError) {
        match error {
            JobError::Refused { refusal } => self.refused.push(refusal_json(refusal)),
            other => self.refused.push(json!({"path": null, "sentence": other.to_string(), "next_step": null})),
        }
    }

    pub(super) fn file(&mut self, report: FileReport, damage: Option<&Refusal>) {
        self.files.push(report);
        self.refused.extend(damage.map(refusal_json));
    }

    /// Fails with the first refusal if no file was read.
    pub(super) fn some_file(&mut self) -> Result<(), JobError> {
        if !self.files.is_empty() {
            return Ok(());
        }
        Err(self.first_refusal.take().unwrap_or_else(|| wrong("no files were given")))
    }

    pub(super) fn unread(&self) -> Json {
        let mut counts: Map<String, Json> = Map::new();
        for missed in self.files.iter().flat_map(|file| &file.tally.missed) {
            let word = super::super::tally::word_of(*missed.0);
            let before = counts.get(word).and_then(Json::as_u64).unwrap_or(0);
            counts.insert(word.to_owned(), json!(before + missed.1.count));
        }
        Json::Object(counts)
    }

    pub(super) fn counts(&self) -> Map<String, Json> {
        let sum = |value: fn(&FileReport) -> u64| self.files.iter().map(value).sum::<u64>();
        let mut told = Map::new();
        told.insert("files".to_owned(), json!(self.files.len()));
        told.insert("bytes".to_owned(), json!(sum(|file| file.tally.bytes)));
        told.insert("lines".to_owned(), json!(sum(|file| file.tally.lines)));
        told.insert("unread".to_owned(), self.unread());
        told.insert("warnings".to_owned(), self.warnings());
        told.insert("refused".to_owned(), json!(self.refused));
        told
    }

    pub(super) fn warnings(&self) -> Json {
        json!(self.files.iter().flat_map(|file| &file.warnings).collect::<Vec<_>>())
    }

    /// Returns the report as the text of a JSON object.
    pub(super) fn text(&self) -> String {
        let mut account = Account::default();
        self.files.iter().for_each(|file| account.add(&file.account));
        let sum = |value: fn(&FileReport) -> u64| self.files.iter().map(value).sum::<u64>();
        let totals = json!({
            "files": self.files.len(),
            "bytes": sum(|file| file.tally.bytes),
            "lines": sum(|file| file.tally.lines),
            "records": sum(|file| file.tally.records.iter().sum()),
            "account": account_json(&account),
        });
        let missed = self.files.iter().any(|file| !file.tally.missed.is_empty());
        let rest = json!({
            "refused": self.refused,
            "ok": !missed && self.refused.is_empty() && !self.files.is_empty(),
            "totals": totals,
            "sessions": self.files.iter().map(|file| file.sessions.len()).sum::<usize>(),
            "unread": self.unread(),
            "warnings": self.warnings(),
        });
        let files: Vec<&str> = self.files.iter().map(|file| file.json.as_str()).collect();
        format!("{{\"files\":[{}],{}", files.join(","), &rest.to_string()[1..])
    }
}
