//! Options of a job, from JSON.

use serde_json::Value as Json;

use super::super::filter::{Field, Filter};
use super::super::profile::{BY_MAX, Request};
use super::super::reader::Reading;
use super::JobError;

/// Options of a job: the files to read, and the options for reading them.
#[derive(Clone, Debug)]
pub struct JobOptions {
    /// Files, directories and patterns, each with its arm.
    pub files: Vec<(String, String)>,
    /// Shortest message from the client that counts as think time [ns].
    pub think_time_ns: i64,
    /// True if bind values are kept.
    pub binds: bool,
    /// Number of threads; the number of processors if not set.
    pub threads: Option<usize>,
    /// Unit of time [ns]; determined from header and stamps if not set.
    pub tim_unit_ns: Option<i64>,
    /// Number of bytes lexed at a time.
    pub chunk_bytes: Option<usize>,
}

pub(super) fn wrong(what: &str) -> JobError {
    JobError::Options(what.to_owned())
}

impl JobOptions {
    /// Reads options from JSON: `files` (paths, or `{"path", "arm"}`), `think_time_ns`, `binds`, `threads`,
    /// `tim_unit_ns`.
    ///
    /// # Errors
    /// The JSON is invalid, or a value is not allowed.
    pub fn from_json(text: &str) -> Result<Self, JobError> {
        let json: Json = serde_json::from_str(text).map_err(|e| JobError::Options(e.to_string()))?;
        let files = json["files"].as_array().ok_or_else(|| wrong("files: a list of paths is needed"))?;
        let file = |file: &Json| match file {
            Json::String(path) => Ok((path.clone(), String::new())),
            other => {
                let path = other["path"].as_str().ok_or_else(|| wrong("files: a path is needed"))?;
                Ok((path.to_owned(), other["arm"].as_str().unwrap_or_default().to_owned()))
            }
        };
        Ok(Self {
            files: files.iter().map(file).collect::<Result<_, JobError>>()?,
            think_time_ns: json["think_time_ns"].as_i64().unwrap_or(1_000_000_000),
            binds: json["binds"].as_bool().unwrap_or(false),
            threads: json["threads"].as_u64().map(|threads| threads as usize),
            tim_unit_ns: json["tim_unit_ns"].as_i64().filter(|unit| (1..=1_000_000_000).contains(unit)),
            chunk_bytes: json["chunk_bytes"].as_u64().map(|bytes| bytes as usize),
        })
    }

    /// Returns default options for these files.
    pub fn of<P: AsRef<str>>(paths: &[P]) -> Self {
        Self {
            files: paths.iter().map(|path| (path.as_ref().to_owned(), String::new())).collect(),
            think_time_ns: 1_000_000_000,
            binds: false,
            threads: None,
            tim_unit_ns: None,
            chunk_bytes: None,
        }
    }

    pub(super) fn reading(&self, file: u32, statements: bool) -> Reading {
        Reading {
            file,
            unit_ns: self.tim_unit_ns,
            think_time_ns: self.think_time_ns,
            statements,
            is_unit_asked: self.tim_unit_ns.is_some(),
        }
    }
}

/// Reads the request of a profile from JSON: `by`, `where`, `from_ns`, `to_ns`, `depth`, `top`.
///
/// # Errors
/// The JSON is invalid, or a value is not allowed.
pub fn request_from_json(text: &str) -> Result<Request, JobError> {
    let json: Json = serde_json::from_str(text).map_err(|e| JobError::Options(e.to_string()))?;
    let mut request = Request::default();
    if let Some(by) = json["by"].as_array().filter(|by| !by.is_empty()) {
        let field = |name: &Json| {
            let name = name.as_str().unwrap_or_default();
            Field::to_group_by(name).ok_or_else(|| {
                let known: Vec<&str> = Field::ALL[..Field::ALL.len() - 2].iter().map(|(n, _)| *n).collect();
                JobError::Options(format!("by: there is no {name:?}\n  next: choose from {}", known.join(", ")))
            })
        };
        request.by = by.iter().map(field).collect::<Result<_, JobError>>()?;
    }
    if request.by.len() > BY_MAX {
        return Err(JobError::Options(format!("by: at most {BY_MAX} at once")));
    }
    request.filter = json["where"].as_str().map(Filter::parse).transpose()?;
    request.from_ns = json["from_ns"].as_i64();
    request.to_ns = json["to_ns"].as_i64();
    request.depth = json["depth"].as_u64().map(|depth| depth.min(254) as u8);
    request.top = json["top"].as_u64().map(|top| top as usize);
    Ok(request)
}
