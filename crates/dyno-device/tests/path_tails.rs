//! What the path through the kernel adds to the time of a request, measured with devices that answer after a constant
//! time.
//!
//! A mount that sleeps is woken for each request; a mount that polls is not. Nothing else differs, so the difference
//! between their tails is the cost of waking the mount. A pipe without any mount shows what it costs to wake the
//! reading program.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, missing_docs)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::wall_clock::{Folder, one_server, quantile};

const PAGE: [u8; 4_096] = [1; 4_096];
const COUNT: u64 = 3_000;

/// Returns the times of reads of 4 KB, one after the other, from a device that takes `service_us` for each read [us].
fn read_us(service_us: u64, polls: bool) -> Option<Vec<f64>> {
    let folder = Folder::new(&format!("tail-{service_us}-{polls}"))?;
    let spec = serde_json::json!({"toml": one_server(service_us), "direct_io": true, "polls": polls});
    let mount = folder.mount(&spec);
    let file = File::options().read(true).write(true).create_new(true).open(folder.0.join("mounted/file")).unwrap();
    file.write_all_at(&PAGE, 0).unwrap();
    let mut page = PAGE;
    let one = |_| {
        let begin = Instant::now();
        file.read_exact_at(&mut page, 0).unwrap();
        begin.elapsed().as_nanos() as f64 / 1e3
    };
    let times = (0..COUNT.min(4_000_000 / service_us)).map(one).collect();
    let status = mount.status();
    println!("  floor {} us (p99 {}), late {:?}", status.floor_ns / 1000, status.floor_p99_ns / 1000, status.late);
    drop(file);
    mount.unmount(false).unwrap();
    Some(times)
}

fn set_nonblocking(descriptor: impl AsFd) {
    let flags = OFlag::from_bits_retain(fcntl(&descriptor, FcntlArg::F_GETFL).unwrap());
    fcntl(&descriptor, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).unwrap();
}

/// Returns the times for which a program waits for a byte that another, spinning thread sends after `service_us` [us].
fn pipe_us(service_us: u64) -> Vec<f64> {
    let (mut ask, mut answer) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    set_nonblocking(&ask.0);
    let service = Duration::from_micros(service_us);
    let partner = thread::spawn(move || {
        let mut byte = [0];
        for _ in 0..COUNT {
            while ask.0.read(&mut byte).is_err() {}
            let begin = Instant::now();
            while begin.elapsed() < service {
                std::hint::spin_loop();
            }
            answer.1.write_all(&byte).unwrap();
        }
    });
    let mut byte = [0];
    let one = |_| {
        let begin = Instant::now();
        ask.1.write_all(&[1]).unwrap();
        answer.0.read_exact(&mut byte).unwrap();
        begin.elapsed().as_nanos() as f64 / 1e3
    };
    let times = (0..COUNT).map(one).collect();
    partner.join().unwrap();
    times
}

/// Prints a row, and returns by how much p99 exceeds the service time [us].
fn tail_us(name: &str, service_us: u64, times: &[f64]) -> f64 {
    let [half, late] = [0.5, 0.99].map(|q| quantile(times, q));
    let service = service_us as f64;
    println!("{name} {service_us} us: median {half:.0}, p99 {late:.0}, above the service {:.0} us", late - service);
    late - service
}

#[test]
#[ignore = "needs an idle machine"]
fn the_tail_of_a_constant_device_is_the_waking_of_its_mount() {
    for service_us in [109, 500] {
        let Some(times) = read_us(service_us, false) else { return };
        let sleeping = tail_us("mount that sleeps", service_us, &times);
        let polling = tail_us("mount that polls ", service_us, &read_us(service_us, true).unwrap());
        tail_us("pipe             ", service_us, &pipe_us(service_us));
        assert!(polling < sleeping, "{service_us} us: {polling} us above it, sleeping {sleeping} us");
    }
}
