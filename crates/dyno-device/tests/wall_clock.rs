//! Mounted devices in wall-clock time, compared with the same requests in virtual time and with closed forms.
//!
//! Run them with `cargo test --release -p dyno-device -- --ignored` on an idle machine. Without /dev/fuse they pass and
//! report that they were skipped.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, missing_docs)]

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dyno_device::DeviceError;
use dyno_device::devices::{Model, built_in};
use dyno_device::mount::{Mount, MountSpec};
use dyno_model::device::{Request, start};
use dyno_model::kernel::{Simulation, Streams};

const SEED: u64 = 7;
const PAGES: u64 = 1 << 16;
const PAGE_BYTES: u64 = 4_096;

pub fn text_of(name: &str) -> String {
    built_in().find(|(own, _)| *own == name).unwrap().1.to_owned()
}

/// Returns a device that serves one request at a time in constant time.
pub fn one_server(us: u64) -> String {
    let times = format!("{{ kind = \"constant\", us = {us}.0 }}");
    format!(
        "title = \"constant\"\n[devices.d]\nkind = \"empirical\"\ncapacity_gb = 10.0\nservers = 1\n\
         regimes = [{{ read = {times}, write = {times} }}]\n[storage]\nredo = \"d\"\ndata = \"d\"\n"
    )
}

pub struct Folder(pub PathBuf);

impl Folder {
    /// Creates two empty folders for this test, `mounted` and `back`; returns `None` without FUSE.
    pub fn new(name: &str) -> Option<Self> {
        if !Path::new("/dev/fuse").exists() {
            println!("skipped: there is no /dev/fuse; a container gets it with --device /dev/fuse");
            return None;
        }
        let root = std::env::temp_dir().join(format!("dyno-device-{}-{name}", std::process::id()));
        fs::create_dir_all(root.join("mounted")).unwrap();
        fs::create_dir_all(root.join("back")).unwrap();
        Some(Self(root))
    }

    pub fn mount(&self, spec: &serde_json::Value) -> Mount {
        self.try_mount(spec).unwrap()
    }

    pub fn try_mount(&self, spec: &serde_json::Value) -> Result<Mount, DeviceError> {
        let mut all = serde_json::json!({
            "device": "test", "folder": self.0.join("mounted"), "back": self.0.join("back"), "threads": 4, "seed": SEED,
        });
        for (key, value) in spec.as_object().unwrap() {
            all[key] = value.clone();
        }
        Mount::new(serde_json::from_value::<MountSpec>(all).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the latencies of `depth` jobs in virtual time [ns]; each job reads random pages, one after the other.
fn virtual_ns(toml: &str, depth: u64, count: u64) -> Vec<u64> {
    let simulation = Simulation::new(SEED);
    let device = Model::new(toml, &[], SEED).unwrap().build(simulation.sim()).unwrap();
    let seen = Rc::new(RefCell::new(Vec::new()));
    for job in 0..depth {
        let (sim, device, seen) = (simulation.sim().clone(), Rc::clone(&device), Rc::clone(&seen));
        let mut dice = simulation.stream(&format!("job {job}"));
        simulation.spawn("job", async move {
            for _ in 0..count {
                let begin_ns = sim.now_ns();
                let request = Request::read(dice.below(PAGES) * PAGE_BYTES, PAGE_BYTES);
                let done_ns = start(&sim, &*device, request).await;
                seen.borrow_mut().push(done_ns - begin_ns);
            }
        });
    }
    simulation.run().unwrap();
    seen.take()
}

/// Returns a new file on a mount, whose megabytes have consecutive addresses on the device.
fn file_of(folder: &Folder) -> File {
    let path = folder.0.join("mounted/file");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.set_len(PAGES * PAGE_BYTES).unwrap();
    for megabyte in 0..(PAGES * PAGE_BYTES) >> 20 {
        file.write_all_at(&[1], megabyte << 20).unwrap();
    }
    file
}

/// Returns the latencies of the jobs of [`virtual_ns`], run as threads that read a file on the mount [ns].
fn wall_ns(folder: &Folder, mount: &Mount, file: File, depth: u64, count: u64) -> Vec<u64> {
    let file = Arc::new(file);
    let jobs = (0..depth).map(|job| {
        let file = Arc::clone(&file);
        thread::spawn(move || {
            let mut dice = Streams::new(SEED).named(&format!("job {job}"));
            let mut page = [0; PAGE_BYTES as usize];
            let one = |_| {
                let begin = Instant::now();
                file.read_exact_at(&mut page, dice.below(PAGES) * PAGE_BYTES).unwrap();
                begin.elapsed().as_nanos() as u64
            };
            (0..count).map(one).collect::<Vec<_>>()
        })
    });
    let jobs: Vec<_> = jobs.collect();
    let all = jobs.into_iter().flat_map(|job| job.join().unwrap()).collect();
    drop(file);
    mount.unmount(false).unwrap();
    fs::remove_file(folder.0.join("back/file")).unwrap();
    all
}

pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * q) as usize]
}

fn floats(values: Vec<u64>) -> Vec<f64> {
    values.into_iter().map(|value| value as f64).collect()
}

/// Time that an idle core of a virtual machine takes to start a thread in about one of a hundred cases [ns].
const START_NS: f64 = 30e3;

/// Prints quantiles next to those in virtual time, and returns those that differ by more than 3 % (median) or 10 %
/// (p99).
fn misses(name: &str, found: &[f64], wanted: &[f64]) -> Vec<String> {
    let mut missed = Vec::new();
    for (q, most, start_ns) in [(0.5, 0.03, 0.0), (0.99, 0.10, START_NS)] {
        let [found, wanted] = [found, wanted].map(|values| quantile(values, q));
        let off = found / wanted - 1.0;
        let row = format!(
            "{name} p{}: {:.0} us, {:.0} us in virtual time, {:+.1} %",
            q * 100.0,
            found / 1e3,
            wanted / 1e3,
            off * 100.0
        );
        println!("{row}");
        if (found - wanted).abs() > (wanted * most).max(start_ns) {
            missed.push(row);
        }
    }
    missed
}

/// Returns the quantiles that differ from virtual time on one device; `None` if the device is faster than the floor.
fn misses_on(name: &str, depth: u64, polls: bool) -> Option<Vec<String>> {
    let folder = Folder::new(&format!("same-{name}-{depth}-{polls}"))?;
    let toml = text_of(name);
    let mount = match folder.try_mount(&serde_json::json!({"toml": toml, "direct_io": true, "polls": polls})) {
        Ok(mount) => mount,
        Err(error @ DeviceError::Floor(_)) => {
            println!("{name} refused: {error}");
            return None;
        }
        Err(error) => panic!("{name}: {error}"),
    };
    let count = if depth == 1 { 4_000 } else { 1_000 };
    let file = file_of(&folder);
    // Else the first read of each page waits for the folder below.
    fs::read(folder.0.join("back/file")).unwrap();
    // Else reads wait for flash chips that program what the file's making left in the buffer.
    thread::sleep(Duration::from_secs(1));
    let [found, wanted] = [wall_ns(&folder, &mount, file, depth, count), virtual_ns(&toml, depth, count)].map(floats);
    let how = if polls { " polling" } else { "" };
    Some(misses(&format!("{name}{how} depth {depth}"), &found, &wanted))
}

#[test]
#[ignore = "needs an idle machine"]
fn latencies_in_wall_clock_time_are_those_of_virtual_time() {
    // A few devices only: DBDYNO_DEVICES=flash-2011,gp3.
    let only = std::env::var("DBDYNO_DEVICES").ok();
    let is_wanted = |name: &str| only.as_ref().is_none_or(|names| names.split(',').any(|one| one == name));
    let names = built_in().map(|(name, _)| name).filter(|name| is_wanted(name));
    let pairs = names.flat_map(|name| [1, 32].map(|depth| (name, depth)));
    let missed: Vec<_> = pairs.filter_map(|(name, depth)| misses_on(name, depth, false)).flatten().collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
#[ignore = "needs an idle machine"]
fn reads_of_fast_devices_one_after_the_other_have_their_times_on_a_mount_that_polls() {
    let fast = ["flash-2011", "flash-2013", "sata-2024", "nvme-2024", "nvme-client-2024", "optane-2018"];
    let missed: Vec<_> = fast.iter().filter_map(|name| misses_on(name, 1, true)).flatten().collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Compares the waits at a single server (constant service times, random arrivals) with the Pollaczek-Khinchine
/// formula.
#[test]
#[ignore = "needs an idle machine"]
fn a_single_server_under_arrivals_at_random_waits_as_md1_does() {
    let Some(folder) = Folder::new("md1") else { return };
    let (service_us, load, count) = (500.0, 0.6, 4_000);
    let mount = folder.mount(&serde_json::json!({"toml": one_server(500), "direct_io": true}));
    let file = File::options().read(true).write(true).create(true).truncate(false).open(folder.0.join("mounted/f"));
    let file = Arc::new(file.unwrap());
    file.set_len(1 << 20).unwrap();
    let mut dice = Streams::new(SEED).named("arrivals");
    let begin = Instant::now();
    let mut due_ns = 0.0;
    let mut jobs = Vec::new();
    for _ in 0..count {
        due_ns += dice.exponential(service_us * 1e3 / load);
        while (begin.elapsed().as_nanos() as f64) < due_ns {
            thread::sleep(Duration::from_micros(20));
        }
        let file = Arc::clone(&file);
        jobs.push(thread::spawn(move || {
            let mut page = [0; 4_096];
            let begin = Instant::now();
            file.read_exact_at(&mut page, 0).unwrap();
            begin.elapsed().as_nanos() as f64 / 1e3
        }));
    }
    let sum: f64 = jobs.into_iter().map(|job| job.join().unwrap()).sum();
    drop(file);
    mount.unmount(false).unwrap();
    let (found, wanted) = (sum / f64::from(count), service_us * (1.0 + load / (2.0 * (1.0 - load))));
    println!("mean {found:.0} us, M/D/1 {wanted:.0} us");
    assert!((found / wanted - 1.0).abs() < 0.1, "{found} us, not {wanted} us");
}

/// Returns a machine whose storage is one volume with a token bucket and constant latencies.
fn volume(iops: f64, read_us: f64, write_us: f64) -> String {
    let [read, write] = [read_us, write_us].map(|us| format!("{{ kind = \"constant\", us = {us:.1} }}"));
    format!(
        "title = \"t\"\n[devices.v]\nkind = \"volume\"\niops = {iops:.1}\nread = {read}\nwrite = {write}\n\
         [storage]\nredo = \"v\"\ndata = \"v\"\n"
    )
}

#[test]
fn a_bucket_of_ten_and_a_hundred_a_second_admits_sixty_in_half_a_second() {
    let Some(folder) = Folder::new("bucket") else { return };
    let toml = volume(100.0, 200.0, 200.0);
    let mount = folder.mount(&serde_json::json!({"toml": toml, "direct_io": true}));
    // The bucket refills from its first request on, which may be that of the new file.
    let begin = Instant::now();
    let file = File::create(folder.0.join("mounted/f")).unwrap();
    for _ in 0..60 {
        file.write_all_at(&[0; 512], 0).unwrap();
    }
    let took = begin.elapsed().as_secs_f64();
    drop(file);
    let late = mount.status().late;
    mount.unmount(false).unwrap();
    assert!((0.5..0.9).contains(&took), "{took} s, late {late:?}");
}

#[test]
fn thirty_two_requests_at_once_overlap_on_a_device_with_channels() {
    let Some(folder) = Folder::new("overlap") else { return };
    let begin = Instant::now();
    let mount = folder.mount(&serde_json::json!({"toml": volume(1e6, 20_000.0, 50.0), "direct_io": true}));
    let file = file_of(&folder);
    let latencies = wall_ns(&folder, &mount, file, 32, 4);
    // One after the other they would take 2.5 s, at once 80 ms.
    assert!(latencies.len() == 128 && latencies.iter().sum::<u64>() >= 128 * 20_000_000);
    assert!(begin.elapsed() < Duration::from_millis(1_500), "{:?}", begin.elapsed());
}
