//! Tests RAID-5 against the times and the numbers of I/Os of its members.
#![allow(clippy::unwrap_used, missing_docs)]

use std::rc::Rc;

use crate::common::closed_loop;
use dyno_model::device::empirical::{Empirical, EmpiricalParameters, Regime};
use dyno_model::device::raid5::{Raid5, Raid5Parameters};
use dyno_model::device::{Device, Request, start};
use dyno_model::kernel::sample::Times;
use dyno_model::kernel::{Simulation, Stream};
use dyno_model::machine::Machine;

const READ_NS: u64 = 2_000_000;
const WRITE_NS: u64 = 3_000_000;
const PIECE: u64 = 64 << 10;

/// Returns an array of members that serve one I/O at a time: reads take 2 ms, writes 3 ms.
fn array(simulation: &Simulation, members: u64) -> Rc<Raid5> {
    let member = |number| -> Rc<dyn Device> {
        let times = |ns: u64| Times::Constant { us: ns as f64 / 1e3 };
        let (read, write) = (times(READ_NS), times(WRITE_NS));
        let regimes = vec![Regime { read, write, stay_ms: 0.0, write_us_per_kb: 0.0, time_factor: 1.0 }];
        let parameters = EmpiricalParameters { capacity_gb: 1.0, servers: 1, regimes };
        Empirical::new(simulation, &format!("member {number}"), parameters)
    };
    Raid5::new("array", &Raid5Parameters::default(), (0..members).map(member).collect())
}

/// Returns the time of one request on the idle array [ns], and the number of I/Os that each member served for it.
fn alone(members: u64, request: Request) -> (u64, Vec<u64>) {
    let simulation = Simulation::new(1);
    let array = array(&simulation, members);
    let (sim, device) = (simulation.sim().clone(), Rc::clone(&array));
    simulation.spawn("job", async move {
        start(&sim, &*device, request).await;
    });
    simulation.run().unwrap();
    (simulation.now_ns(), array.reports().iter().map(|report| report.departures).collect())
}

#[test]
fn a_small_write_is_two_reads_and_two_writes_and_a_whole_row_only_writes() {
    // The parity of row 0 is on the last member, that of row 1 on the one before it.
    assert_eq!(alone(4, Request::write(0, 8_192)), (READ_NS + WRITE_NS, vec![2, 0, 0, 2]));
    assert_eq!(alone(4, Request::write(4 * PIECE, 8_192)), (READ_NS + WRITE_NS, vec![2, 0, 2, 0]));
    assert_eq!(alone(4, Request::write(3 * PIECE, 3 * PIECE)), (WRITE_NS, vec![1, 1, 1, 1]));
    // Two pieces of one row: the parity is read and written once.
    assert_eq!(alone(4, Request::write(PIECE - 4_096, 8_192)), (READ_NS + WRITE_NS, vec![2, 2, 0, 2]));
    // Three rows, the middle one whole: the members write it first.
    let (_, served) = alone(4, Request::write(2 * PIECE, 5 * PIECE));
    assert_eq!(served.iter().sum::<u64>(), 4 + 4 + 4);
}

#[test]
fn a_read_goes_to_the_members_that_have_it() {
    assert_eq!(alone(4, Request::read(0, 8_192)), (READ_NS, vec![1, 0, 0, 0]));
    assert_eq!(alone(4, Request::read(0, 3 * PIECE)), (READ_NS, vec![1, 1, 1, 0]));
}

/// Each piece of data has a place that no other piece and no parity has.
#[test]
fn no_two_pieces_of_a_capacity_share_a_place() {
    for members in 3..7_u64 {
        let rows = 2 * members;
        let mut served = vec![0; members as usize];
        for piece in 0..rows * (members - 1) {
            let (_, one) = alone(members, Request::read(piece * PIECE, PIECE));
            assert_eq!(one.iter().sum::<u64>(), 1);
            served.iter_mut().zip(one).for_each(|(sum, count)| *sum += count);
        }
        // The parity takes turns: over whole turns all members have as many pieces.
        assert!(served.iter().all(|&count| count == 2 * (members - 1)), "{served:?}");
    }
}

/// `n` members that take `s` seconds for an I/O serve `n / (4 s)` random small writes per second, and `n / s` reads.
#[test]
fn small_writes_run_at_a_quarter_of_the_members_pace() {
    let rate = |next: fn(&mut Stream, u64) -> Request, jobs: u64| {
        let simulation = Simulation::new(2);
        let array = array(&simulation, 5);
        let device: Rc<dyn Device> = array.clone();
        closed_loop(&simulation, &device, jobs, 40, next);
        assert!(array.reports().iter().all(|report| report.little && report.present == 0));
        (jobs * 40) as f64 / simulation.now_ns() as f64 * 1e9
    };
    let writes = rate(|dice, bytes| Request::write(dice.below(bytes / 8_192) * 8_192, 8_192), 400);
    let reads = rate(|dice, bytes| Request::read(dice.below(bytes / 8_192) * 8_192, 8_192), 400);
    let most = 5.0 / (2.0 * (READ_NS + WRITE_NS) as f64 / 1e9);
    println!("{writes:.0} writes/s of at most {most:.0}, {reads:.0} reads/s of at most {:.0}", 5e9 / READ_NS as f64);
    assert!(writes <= most * 1.001 && writes > 0.9 * most, "{writes} of {most}");
    assert!(reads <= 2_501.0 && reads > 0.9 * 2_500.0, "{reads}");
}

/// Writes to the same row run one after the other, because each computes the parity from the result of the previous
/// one.
#[test]
fn writes_of_one_row_take_turns() {
    let simulation = Simulation::new(3);
    let device: Rc<dyn Device> = array(&simulation, 4);
    closed_loop(&simulation, &device, 7, 1, |dice, _| Request::write(dice.below(3 * PIECE / 8_192) * 8_192, 8_192));
    assert_eq!(simulation.now_ns(), 7 * (READ_NS + WRITE_NS));
}

#[test]
fn a_raid5_over_two_disks_is_refused() {
    let text = |count| {
        format!(
            "title = \"t\"\n[devices.disk]\nkind = \"disk\"\ncount = {count}\n[devices.array]\nkind = \"raid5\"\n\
             over = \"disk\"\n[storage]\nredo = \"array\"\ndata = \"array\"\n"
        )
    };
    let refused = Machine::parse(&text(2)).unwrap_err().to_string();
    assert!(refused.contains("line 5, devices.array: a raid5 stands over 3 devices or more, found 2"), "{refused}");
    let simulation = Simulation::new(4);
    let device = Machine::parse(&text(4)).unwrap().data_device(simulation.sim()).unwrap();
    // Three disks of data, in whole pieces.
    assert_eq!(device.capacity_bytes(), 600_000_000_000 / PIECE * PIECE * 3);
}
