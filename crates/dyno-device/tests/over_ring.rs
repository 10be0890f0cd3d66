//! Requests through `io_uring`: the same content and times as with reads of `/dev/fuse`.
//!
//! The tests switch FUSE over `io_uring` on in the kernel, and restore the switch afterwards. Where that is not
//! allowed, they pass and report that they were skipped.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dyno_device::mount::Mount;
use dyno_device::status::Transport;
use dyno_ring::SWITCH;

use crate::wall_clock::{Folder, one_server, quantile};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The kernel's switch for FUSE over `io_uring`; the switch is on until this value is dropped.
struct Switched {
    before: String,
    _guard: MutexGuard<'static, ()>,
}

impl Switched {
    fn on() -> Option<Self> {
        let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let before = fs::read_to_string(SWITCH).unwrap_or_default();
        if before.is_empty() || fs::write(SWITCH, "Y").is_err() {
            println!("skipped: this kernel has no FUSE over io_uring (Linux 6.14), or this user may not switch it on");
            return None;
        }
        Some(Self { before, _guard: guard })
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        let _ = fs::write(SWITCH, &self.before);
    }
}

fn mount(folder: &Folder, transport: Transport, toml: Option<&str>) -> Mount {
    let mount = folder.mount(&serde_json::json!({"toml": toml, "direct_io": true, "transport": transport}));
    assert_eq!(mount.status().transport, transport);
    mount
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

/// Sends each kind of request once, and returns what a program sees.
fn story(root: &Path) -> Vec<String> {
    let mut seen = Vec::new();
    let large = content(3 << 20);
    fs::create_dir(root.join("folder")).unwrap();
    fs::write(root.join("folder/large"), &large).unwrap();
    seen.push(format!("{}", fs::read(root.join("folder/large")).unwrap() == large));
    fs::rename(root.join("folder/large"), root.join("folder/moved")).unwrap();
    std::os::unix::fs::symlink("moved", root.join("folder/link")).unwrap();
    fs::hard_link(root.join("folder/moved"), root.join("folder/second")).unwrap();
    seen.push(fs::read_link(root.join("folder/link")).unwrap().display().to_string());
    let mut names: Vec<_> =
        fs::read_dir(root.join("folder")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    seen.push(format!("{names:?}"));
    let file = File::options().read(true).write(true).open(root.join("folder/moved")).unwrap();
    file.write_all_at(b"over there", 1 << 20).unwrap();
    file.set_len((1 << 20) + 10).unwrap();
    file.sync_all().unwrap();
    nix::fcntl::fallocate(&file, nix::fcntl::FallocateFlags::empty(), 0, 2 << 20).unwrap();
    let punch = nix::fcntl::FallocateFlags::FALLOC_FL_PUNCH_HOLE | nix::fcntl::FallocateFlags::FALLOC_FL_KEEP_SIZE;
    nix::fcntl::fallocate(&file, punch, 0, 4_096).unwrap();
    let mut ten = [0; 10];
    file.read_exact_at(&mut ten, 1 << 20).unwrap();
    seen.push(format!("{} {:?} {}", file.metadata().unwrap().len(), std::str::from_utf8(&ten), first_byte(&file)));
    let direct = File::options().read(true).custom_flags(nix::libc::O_DIRECT).open(root.join("folder/second")).unwrap();
    seen.push(format!("{}", first_byte(&direct)));
    seen.push(format!("{}", fs::read(root.join("nothing")).unwrap_err()));
    seen.push(format!("{}", fs::create_dir(root.join("folder")).unwrap_err()));
    fs::remove_file(root.join("folder/second")).unwrap();
    seen.push(format!("{}", fs::remove_dir(root.join("folder")).unwrap_err()));
    seen.push(format!("{:?}", File::open(root.join("folder")).unwrap().sync_all().is_ok()));
    fs::remove_dir_all(root.join("folder")).unwrap();
    seen
}

fn first_byte(file: &File) -> u8 {
    let mut one = [9];
    file.read_exact_at(&mut one, 7).unwrap();
    one[0]
}

#[test]
fn a_program_sees_the_same_files_as_by_reads_of_dev_fuse() {
    let Some(_switched) = Switched::on() else { return };
    let stories = [Transport::Ring, Transport::Read].map(|transport| {
        let folder = Folder::new(&format!("story-{transport:?}")).unwrap();
        let mount = mount(&folder, transport, None);
        let seen = story(&folder.0.join("mounted"));
        mount.unmount(false).unwrap();
        assert!(fs::read_dir(folder.0.join("mounted")).unwrap().next().is_none(), "it is still mounted");
        seen
    });
    assert_eq!(stories[0], stories[1]);
}

#[test]
fn sixty_four_programs_at_once_find_what_each_wrote() {
    let Some(_switched) = Switched::on() else { return };
    let folder = Folder::new("ring-many").unwrap();
    let mount = mount(&folder, Transport::Ring, None);
    let path = folder.0.join("mounted/f");
    let file = Arc::new(File::options().read(true).write(true).create_new(true).open(&path).unwrap());
    let jobs = (0..64_u64).map(|job| {
        let file = Arc::clone(&file);
        thread::spawn(move || {
            for round in 0..50_u8 {
                let page = [round ^ job as u8; 4_096];
                let mut found = [0; 4_096];
                file.write_all_at(&page, job * 4_096).unwrap();
                file.read_exact_at(&mut found, job * 4_096).unwrap();
                assert_eq!(page, found, "job {job}, round {round}");
            }
        })
    });
    let jobs: Vec<_> = jobs.collect();
    for job in jobs {
        job.join().unwrap();
    }
    drop(file);
    mount.unmount(false).unwrap();
}

#[test]
fn requests_take_the_devices_time_and_wait_for_each_other() {
    let Some(_switched) = Switched::on() else { return };
    let folder = Folder::new("ring-queue").unwrap();
    let mount = mount(&folder, Transport::Ring, Some(&one_server(2_000)));
    let file = Arc::new(File::create(folder.0.join("mounted/f")).unwrap());
    let begin = Instant::now();
    let jobs: Vec<_> = (0..32_u64)
        .map(|job| {
            let file = Arc::clone(&file);
            thread::spawn(move || {
                file.write_all_at(&[1; 4_096], job * 4_096).unwrap();
                file.sync_all().unwrap();
                begin.elapsed()
            })
        })
        .collect();
    let longest = jobs.into_iter().map(|job| job.join().unwrap()).max().unwrap();
    drop(file);
    let status = mount.status();
    mount.unmount(false).unwrap();
    assert!((64..200).contains(&longest.as_millis()), "{longest:?}, late {:?}", status.late);
    assert_eq!((status.write.count, status.flush.count), (32, 32));
}

#[test]
fn a_mount_that_is_unmounted_while_programs_wait_answers_them_and_ends() {
    let Some(_switched) = Switched::on() else { return };
    let folder = Folder::new("ring-end").unwrap();
    let mount = mount(&folder, Transport::Ring, Some(&one_server(3_000_000)));
    let file = File::create(folder.0.join("mounted/f")).unwrap();
    let waiting = thread::spawn(move || file.write_all_at(&[1; 4_096], 0).is_ok());
    thread::sleep(Duration::from_millis(100));
    let begin = Instant::now();
    mount.unmount(true).unwrap();
    waiting.join().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    assert!(mount.has_ended());
}

#[test]
fn mounts_with_faults_read_dev_fuse() {
    let Some(_switched) = Switched::on() else { return };
    let folder = Folder::new("ring-faults").unwrap();
    let faults = serde_json::json!([{"kind": "slow", "operation": "write", "ms": 1}]);
    let mount = folder.mount(&serde_json::json!({"faults": faults}));
    assert_eq!(mount.status().transport, Transport::Read);
    mount.unmount(false).unwrap();
}

/// Prints the cost of a request for both paths: through `io_uring`, and by reads of `/dev/fuse`.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_request() {
    let Some(_switched) = Switched::on() else { return };
    for (transport, polls) in
        [false, true].into_iter().flat_map(|polls| [(Transport::Read, polls), (Transport::Ring, polls)])
    {
        let folder = Folder::new(&format!("cost-{transport:?}-{polls}")).unwrap();
        let mount = folder.mount(&serde_json::json!({"direct_io": true, "transport": transport, "polls": polls}));
        let file = Arc::new(File::create(folder.0.join("mounted/f")).unwrap());
        for depth in [1, 8, 64] {
            let begin = Instant::now();
            let jobs: Vec<_> = (0..depth)
                .map(|job| {
                    let file = Arc::clone(&file);
                    thread::spawn(move || {
                        let times = (0..40_000 / depth).map(|_| {
                            let begin = Instant::now();
                            file.write_all_at(&[1; 4_096], job * 4_096).unwrap();
                            begin.elapsed().as_nanos() as f64 / 1e3
                        });
                        times.collect::<Vec<_>>()
                    })
                })
                .collect();
            let times: Vec<_> = jobs.into_iter().flat_map(|job| job.join().unwrap()).collect();
            println!(
                "{transport:?}, polls {polls}, depth {depth}: {:.0} a second, p50 {:.1} us, p99 {:.1} us",
                times.len() as f64 / begin.elapsed().as_secs_f64(),
                quantile(&times, 0.5),
                quantile(&times, 0.99)
            );
        }
        drop(file);
        mount.unmount(false).unwrap();
    }
}
