//! Recorder without Python: `record PID FOLDER SECONDS [MODE]`.

use dyno_record::job::Job;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds: u64 = arguments[3].parse()?;
    let request = serde_json::json!({
        "pid": arguments[1].parse::<i32>()?,
        "out": arguments[2],
        "mode": arguments.get(4).map_or("auto", String::as_str),
        "for_ns": seconds * 1_000_000_000,
        "cost_limit": 0.0,
    });
    let begin = std::time::Instant::now();
    let job = Job::start(&request.to_string())?;
    println!("attached in {:?}", begin.elapsed());
    while !job.is_over() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    println!("over after {:?}", begin.elapsed());
    println!("{}", job.finish()?);
    println!("ended after {:?}", begin.elapsed());
    Ok(())
}
