//! Profiles traces and prints the speed: `profile FILES...`, in MB per second of CPU time.

#[path = "shared/cost.rs"]
mod cost;

use dyno_trace::oracle_10046::job::{Job, JobOptions};
use dyno_trace::oracle_10046::profile::Request;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let threads = std::env::var("THREADS").ok().and_then(|n| n.parse().ok());
    let chunk_bytes = std::env::var("CHUNK").ok().and_then(|n| n.parse().ok());
    let options = JobOptions { threads, chunk_bytes, ..JobOptions::of(&paths) };
    let job = Job::new(options);
    let cost = cost::Cost::start();
    let told = job.profile(&Request::default())?;
    cost.print("profile", job.progress().0);
    if std::env::var("SHOW").is_ok() {
        println!("{told}");
    }
    Ok(())
}
