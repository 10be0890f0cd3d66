//! Measures events per second of M/M/1 on the kernel, in its three styles, compared with a bare loop over the standard
//! heap. The style `futures` shows the least that a process per customer can cost: it is the bare loop with a boxed
//! future for each customer, without names, statistics, deadlines, cancellation or a check for deadlocks. CPU time is
//! what counts on a shared machine, so each style runs several times alternately and the best run of each is printed,
//! as JSON on one line.
//!
//! An event is an arrival or a departure: 2 per customer in every style.
//!
//! `cargo run --release -p dyno-model --example kernel_bench [customers] [rounds]`

mod common;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use dyno_model::kernel::sample::whole_ns;
use dyno_model::kernel::{Channel, Machine, MachineId, Resource, Sim, Simulation, Stream, Streams};

const SERVICE_NS: f64 = 1e6;
const RHO: f64 = 0.8;

fn streams() -> (Stream, Stream) {
    let streams = Streams::new(1);
    (streams.named("arrivals"), streams.named("service"))
}

fn gap_ns(stream: &mut Stream) -> u64 {
    whole_ns(stream.exponential(SERVICE_NS / RHO))
}

fn service_ns(stream: &mut Stream) -> u64 {
    whole_ns(stream.exponential(SERVICE_NS))
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    Departure,
}

/// Runs the bare loop: only heap, random numbers and queue.
fn bare(customers: u64) -> u64 {
    let (mut arrivals, mut service) = streams();
    let (mut heap, mut queue, mut number) = (BinaryHeap::new(), VecDeque::new(), 0_u64);
    let (mut served, mut sojourn_ns) = (0, 0);
    heap.push(Reverse((gap_ns(&mut arrivals), 0, Event::Arrival)));
    while let Some(Reverse((now, _, event))) = heap.pop() {
        match event {
            Event::Arrival => {
                queue.push_back(now);
                number += 1;
                heap.push(Reverse((now + gap_ns(&mut arrivals), number, Event::Arrival)));
                if queue.len() == 1 {
                    number += 1;
                    heap.push(Reverse((now + service_ns(&mut service), number, Event::Departure)));
                }
            }
            Event::Departure => {
                sojourn_ns += now - queue.pop_front().unwrap_or(now);
                served += 1;
                if served == customers {
                    return sojourn_ns;
                }
                if !queue.is_empty() {
                    number += 1;
                    heap.push(Reverse((now + service_ns(&mut service), number, Event::Departure)));
                }
            }
        }
    }
    sojourn_ns
}

/// Future that is pending the first time it is polled, and ready the second time.
struct Once(bool);

impl Future for Once {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// What the futures of customers share: the time, the random numbers, and the end of the current service.
struct Till {
    now: Cell<u64>,
    service: RefCell<Stream>,
    end: Cell<u64>,
    sojourn_ns: Cell<u64>,
}

async fn customer(till: Rc<Till>, is_first: bool) {
    let arrived_ns = till.now.get();
    if !is_first {
        Once(false).await;
    }
    till.end.set(till.now.get() + service_ns(&mut till.service.borrow_mut()));
    Once(false).await;
    till.sojourn_ns.set(till.sojourn_ns.get() + till.now.get() - arrived_ns);
}

/// Runs the bare loop with a boxed future per customer, which is polled when it arrives, is served and leaves.
fn futures(customers: u64) -> u64 {
    let (mut arrivals, service) = streams();
    let service = RefCell::new(service);
    let till = Rc::new(Till { now: Cell::new(0), service, end: Cell::new(0), sojourn_ns: Cell::new(0) });
    let mut context = Context::from_waker(Waker::noop());
    let (mut heap, mut number, mut served) = (BinaryHeap::new(), 0_u64, 0);
    let mut queue: VecDeque<Pin<Box<dyn Future<Output = ()>>>> = VecDeque::new();
    heap.push(Reverse((gap_ns(&mut arrivals), 0, Event::Arrival)));
    while let Some(Reverse((now, _, event))) = heap.pop() {
        till.now.set(now);
        let mut has_begun = false;
        match event {
            Event::Arrival => {
                has_begun = queue.is_empty();
                let mut next: Pin<Box<dyn Future<Output = ()>>> = Box::pin(customer(Rc::clone(&till), has_begun));
                assert!(next.as_mut().poll(&mut context).is_pending(), "a customer was served in no time");
                queue.push_back(next);
                number += 1;
                heap.push(Reverse((now + gap_ns(&mut arrivals), number, Event::Arrival)));
            }
            Event::Departure => {
                let left = queue.pop_front().map(|mut first| first.as_mut().poll(&mut context).is_ready());
                assert_eq!(left, Some(true), "a customer was not served");
                served += 1;
                if served == customers {
                    return till.sojourn_ns.get();
                }
                if let Some(first) = queue.front_mut() {
                    has_begun = first.as_mut().poll(&mut context).is_pending();
                }
            }
        }
        if has_begun {
            number += 1;
            heap.push(Reverse((till.end.get(), number, Event::Departure)));
        }
    }
    till.sojourn_ns.get()
}

/// M/M/1 queue as a state machine of the kernel.
struct Station {
    sim: Sim,
    id: Cell<Option<MachineId>>,
    dice: RefCell<(Stream, Stream)>,
    queue: RefCell<VecDeque<u64>>,
    sojourn_ns: Cell<u64>,
    left: Cell<u64>,
}

impl Station {
    fn at(&self, time_ns: u64, token: u64) {
        if let Some(id) = self.id.get() {
            self.sim.call_at(time_ns, id, token);
        }
    }
}

impl Machine for Station {
    fn event(&self, token: u64) {
        let now = self.sim.now_ns();
        let (mut dice, mut queue) = (self.dice.borrow_mut(), self.queue.borrow_mut());
        if token == 0 {
            queue.push_back(now);
            self.at(now + gap_ns(&mut dice.0), 0);
            if queue.len() == 1 {
                self.at(now + service_ns(&mut dice.1), 1);
            }
            return;
        }
        self.sojourn_ns.set(self.sojourn_ns.get() + now - queue.pop_front().unwrap_or(now));
        self.left.set(self.left.get().saturating_sub(1)); // the last stretch may serve a few more
        if !queue.is_empty() {
            self.at(now + service_ns(&mut dice.1), 1);
        }
    }
}

fn machine(customers: u64) -> u64 {
    let simulation = Simulation::new(1);
    let station = Rc::new(Station {
        sim: simulation.sim().clone(),
        id: Cell::default(),
        dice: RefCell::new(streams()),
        queue: RefCell::default(),
        sojourn_ns: Cell::default(),
        left: Cell::new(customers),
    });
    station.id.set(Some(simulation.add_machine(station.clone())));
    station.at(gap_ns(&mut station.dice.borrow_mut().0), 0);
    while station.left.get() > 0 {
        let step_ns = (station.left.get() as f64 * SERVICE_NS / RHO / 2.0) as u64 + 1;
        simulation.run_until(simulation.now_ns() + step_ns).expect("no deadlock");
    }
    station.sojourn_ns.get()
}

/// Runs the queue as two processes: a source and a server with a channel between them.
fn server(customers: u64) -> u64 {
    let simulation = Simulation::new(1);
    let (mut arrivals, mut service) = streams();
    let queue = Channel::new(&simulation, "queue");
    let sojourn_ns = Rc::new(Cell::new(0));
    let (sim, out) = (simulation.sim().clone(), queue.clone());
    simulation.spawn_daemon("source", async move {
        loop {
            sim.hold(gap_ns(&mut arrivals)).await;
            out.send(sim.now_ns());
        }
    });
    let (sim, sum) = (simulation.sim().clone(), Rc::clone(&sojourn_ns));
    simulation.spawn("server", async move {
        for _ in 0..customers {
            let arrived_ns = queue.receive().await;
            sim.hold(service_ns(&mut service)).await;
            sum.set(sum.get() + sim.now_ns() - arrived_ns);
        }
    });
    simulation.run().expect("no deadlock");
    sojourn_ns.get()
}

/// Runs the queue as one process per customer and a resource with all its statistics.
fn customers(customers: u64) -> u64 {
    let simulation = Simulation::new(1);
    let (mut arrivals, service) = streams();
    let till = Resource::new(&simulation, "till", 1);
    let (sim, counter) = (simulation.sim().clone(), till.clone());
    let service = Rc::new(RefCell::new(service));
    simulation.spawn("source", async move {
        for _ in 0..customers {
            sim.hold(gap_ns(&mut arrivals)).await;
            let (me, till, service) = (sim.clone(), counter.clone(), Rc::clone(&service));
            sim.spawn("customer", async move {
                let _served = till.acquire().await;
                let ns = service_ns(&mut service.borrow_mut());
                me.hold(ns).await;
            });
        }
    });
    simulation.run().expect("no deadlock");
    till.report().sojourn_ns_sum
}

type Style = (&'static str, fn(u64) -> u64);

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let count = numbers.next().unwrap_or(1_000_000);
    let rounds = numbers.next().unwrap_or(5);
    let styles: [Style; 5] =
        [("bare", bare), ("machine", machine), ("server", server), ("customers", customers), ("futures", futures)];
    let mut best = [0.0_f64; 5];
    let mut means_ms = [0.0; 5];
    let clock = Instant::now();
    for _ in 0..rounds {
        for (i, (_, run)) in styles.iter().enumerate() {
            let start_s = common::cpu_s(clock);
            means_ms[i] = run(count) as f64 / count as f64 / 1e6;
            best[i] = best[i].max(2.0 * count as f64 / (common::cpu_s(clock) - start_s));
        }
    }
    let fields: Vec<String> =
        styles.iter().zip(best).map(|((name, _), rate)| format!("\"{name}_events_per_s\": {rate:.0}")).collect();
    println!(
        "{{\"customers\": {count}, \"mean_ms\": {:.4}, {}, \"server_over_bare\": {:.3}, \
         \"machine_over_bare\": {:.3}, \"customers_over_bare\": {:.3}, \"futures_over_bare\": {:.3}}}",
        means_ms[0],
        fields.join(", "),
        best[2] / best[0],
        best[1] / best[0],
        best[3] / best[0],
        best[4] / best[0]
    );
}
