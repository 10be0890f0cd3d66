//! Replay of recorded requests on a modelled device in virtual time, at their recorded arrival times.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use dyno_model::device::{Done, Observer, Request};
use dyno_model::kernel::{Sim, Simulation};

use crate::DeviceError;
use crate::devices::Model;

/// Number of outstanding requests at which a replay stops: the device is too slow for the recorded load, and disk
/// schedulers become slow with so many requests.
pub const UNDER_WAY_MOST: usize = 10_000;

/// A recorded request.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// Arrival time [ns]; not before that of the previous request.
    pub arrived_ns: u64,
    /// The request itself.
    pub request: Request,
}

struct Times {
    sim: Sim,
    ended_ns: RefCell<Vec<u64>>,
    left: Cell<usize>,
}

impl Observer for Times {
    fn done(&self, token: u64) {
        if let Some(ended) = self.ended_ns.borrow_mut().get_mut(token as usize) {
            *ended = self.sim.now_ns();
        }
        self.left.set(self.left.get() - 1);
    }
}

/// Returns the time of each request on an initially idle device [ns]. Requests arrive as recorded, even if earlier ones
/// are incomplete. When [`UNDER_WAY_MOST`] requests are outstanding, the replay stops and returns the times of the
/// requests up to then.
///
/// # Errors
/// The description is invalid, or the device does not complete the requests.
pub fn replay(model: &Model, requests: &[Recorded]) -> Result<Vec<u64>, DeviceError> {
    let simulation = Simulation::new(model.seed);
    let device = model.build(simulation.sim())?;
    let times = Rc::new(Times {
        sim: simulation.sim().clone(),
        ended_ns: RefCell::new(vec![0; requests.len()]),
        left: Cell::new(0),
    });
    let stuck = |error: dyno_model::kernel::SimError| DeviceError::Broken(error.to_string());
    let mut submitted = 0;
    for (token, one) in requests.iter().enumerate() {
        simulation.run_until(one.arrived_ns).map_err(stuck)?;
        if times.left.get() >= UNDER_WAY_MOST {
            break;
        }
        submitted += 1;
        times.left.set(times.left.get() + 1);
        device.submit(one.request, Done::new(times.clone(), token as u64));
    }
    while times.left.get() > 0 {
        let Some(next_ns) = simulation.next_ns() else {
            return Err(DeviceError::Broken(format!("{} requests are never complete", times.left.get())));
        };
        simulation.run_until(next_ns).map_err(stuck)?;
    }
    let ended = times.ended_ns.take();
    Ok(ended.iter().zip(&requests[..submitted]).map(|(end, one)| end.saturating_sub(one.arrived_ns)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(us: f64, servers: u32) -> Model {
        let time = format!("{{ kind = \"constant\", us = {us:.1} }}");
        let toml = format!(
            "title = \"t\"\n[devices.d]\nkind = \"empirical\"\ncapacity_gb = 10.0\nservers = {servers}\n\
             regimes = [{{ read = {time}, write = {time} }}]\n[storage]\nredo = \"d\"\ndata = \"d\"\n"
        );
        Model::new(&toml, &[], 1).unwrap_or_else(|error| panic!("{error:?}"))
    }

    fn at_us(arrivals: &[u64]) -> Vec<Recorded> {
        let request = Request::read(0, 4_096);
        arrivals.iter().map(|us| Recorded { arrived_ns: us * 1_000, request }).collect()
    }

    #[test]
    fn requests_queue_for_one_server_and_overlap_on_two() {
        let arrivals = at_us(&[0, 10, 20, 500]);
        let of = |servers| replay(&model(100.0, servers), &arrivals).unwrap_or_default();
        assert_eq!(of(1), [100_000, 190_000, 280_000, 100_000]);
        assert_eq!(of(2), [100_000, 100_000, 180_000, 100_000]);
        assert_eq!(replay(&model(1.0, 1), &[]).unwrap_or_default(), [0; 0]);
    }

    #[test]
    fn a_device_that_does_not_keep_up_ends_the_replay() {
        let arrivals: Vec<_> = (0..30_000).collect();
        let found = replay(&model(100.0, 1), &at_us(&arrivals)).unwrap_or_default();
        assert!((UNDER_WAY_MOST..UNDER_WAY_MOST * 102 / 100).contains(&found.len()), "{}", found.len());
    }

    #[test]
    fn arrivals_at_random_wait_as_in_md1() {
        let mut dice = dyno_model::kernel::Streams::new(3).named("arrivals");
        let (service_us, load) = (100.0, 0.7);
        let mut due_ns = 0.0;
        let arrivals: Vec<_> = (0..200_000)
            .map(|_| {
                due_ns += dice.exponential(service_us * 1e3 / load);
                Recorded { arrived_ns: due_ns as u64, request: Request::write(0, 512) }
            })
            .collect();
        let found = replay(&model(service_us, 1), &arrivals).unwrap_or_default();
        let mean_us = found.iter().sum::<u64>() as f64 / found.len() as f64 / 1e3;
        let wanted = service_us * (1.0 + load / (2.0 * (1.0 - load)));
        assert!((mean_us / wanted - 1.0).abs() < 0.03, "{mean_us} us, not {wanted} us");
    }
}
