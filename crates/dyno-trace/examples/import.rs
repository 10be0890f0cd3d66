//! Imports traces and prints the speed: `import FOLDER FILES...`, in MB per second of CPU time.

#[path = "shared/cost.rs"]
mod cost;

use std::path::Path;

use dyno_trace::oracle_10046::job::{Job, JobOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let (out, paths) = given.split_first().ok_or("import FOLDER FILES...")?;
    let threads = std::env::var("THREADS").ok().and_then(|n| n.parse().ok());
    let chunk_bytes = std::env::var("CHUNK").ok().and_then(|n| n.parse().ok());
    let options = JobOptions { threads, chunk_bytes, ..JobOptions::of(paths) };
    let job = Job::new(options);
    let cost = cost::Cost::start();
    job.import(Path::new(out))?;
    cost.print("import", job.progress().0);
    Ok(())
}
