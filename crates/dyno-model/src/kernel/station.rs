//! Counts and areas of a queueing station.
//!
//! A station counts arrivals, starts of service and departures, and integrates the number present and the number in
//! service over time. All values are whole numbers, so that two identities hold exactly, at any instant of any run, and
//! are checked in every test:
//!
//! - Little's law on the sample path: the area under the number present is the sum of the times that the customers
//!   present have spent here so far and the times that the departed customers spent here;
//! - arrivals = departures + present.
//!
//! The area is updated when the number changes, the times at each departure. The two agree only if no change was
//! missed.

/// Counts and sums of a station so far; an area is a number of customers integrated over time.
#[derive(Clone, Debug, Default)]
pub struct Station {
    since_ns: u64,
    changed_ns: u64,
    present: u64,
    in_service: u64,
    arrivals: u64,
    starts: u64,
    departures: u64,
    present_area: u128,
    service_area: u128,
    /// Sum of the arrival times of the customers present [ns].
    present_arrived_ns: u128,
    sojourn_ns_sum: u128,
    wait_ns_sum: u128,
    wait_ns_max: u64,
    present_max: u64,
    present_at_reset: u64,
}

/// Statistics of a station up to an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct StationReport {
    /// Name of the station.
    pub name: String,
    /// Number of servers; utilisation is per server.
    pub servers: u64,
    /// Length of the observation [ns].
    pub elapsed_ns: u64,
    /// Number of arrivals.
    pub arrivals: u64,
    /// Number of departures.
    pub departures: u64,
    /// Number of customers present now.
    pub present: u64,
    /// Largest number of customers present at once.
    pub present_max: u64,
    /// Mean number of customers present, waiting or in service: L.
    pub present_mean: f64,
    /// Mean number of waiting customers: Lq.
    pub queue_mean: f64,
    /// Share of time in which a server is busy, on average over the servers.
    pub utilisation: f64,
    /// Sum of the waits from arrival to start of service, over the customers whose service has started [ns].
    pub wait_ns_sum: u64,
    /// Longest wait [ns].
    pub wait_ns_max: u64,
    /// Mean wait of the customers whose service has started [ns]; 0 if there are none.
    pub wait_ns_mean: f64,
    /// Sum of the times from arrival to departure, over the departed customers [ns].
    pub sojourn_ns_sum: u64,
    /// Mean time from arrival to departure of the departed customers [ns]; 0 if there are none.
    pub sojourn_ns_mean: f64,
    /// True if Little's law holds as an identity.
    pub little: bool,
}

impl Station {
    #[inline]
    fn advance(&mut self, now_ns: u64) {
        if now_ns == self.changed_ns {
            return;
        }
        let passed = u128::from(now_ns - self.changed_ns);
        self.present_area += passed * u128::from(self.present);
        self.service_area += passed * u128::from(self.in_service);
        self.changed_ns = now_ns;
    }

    /// Records an arrival.
    #[inline]
    pub fn arrive(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.arrivals += 1;
        self.present += 1;
        self.present_max = self.present_max.max(self.present);
        self.present_arrived_ns += u128::from(now_ns);
    }

    /// Records the start of service of a customer that arrived at `arrived_ns`.
    #[inline]
    pub fn start(&mut self, now_ns: u64, arrived_ns: u64) {
        self.advance(now_ns);
        self.starts += 1;
        self.in_service += 1;
        let wait = now_ns - arrived_ns;
        self.wait_ns_sum += u128::from(wait);
        self.wait_ns_max = self.wait_ns_max.max(wait);
    }

    /// Records the departure of a served customer that arrived at `arrived_ns`.
    #[inline]
    pub fn depart(&mut self, now_ns: u64, arrived_ns: u64) {
        self.advance(now_ns);
        self.departures += 1;
        self.present -= 1;
        self.in_service -= 1;
        self.present_arrived_ns -= u128::from(arrived_ns);
        self.sojourn_ns_sum += u128::from(now_ns - arrived_ns);
    }

    /// Records the departure of a customer that arrived at `arrived_ns` and was not served.
    pub fn give_up(&mut self, now_ns: u64, arrived_ns: u64) {
        self.start(now_ns, arrived_ns);
        self.depart(now_ns, arrived_ns);
    }

    /// Returns the number of customers present now.
    #[inline]
    pub fn present(&self) -> u64 {
        self.present
    }

    /// Resets everything except the customers present, at the end of a warm-up. The times of these customers count from
    /// now on.
    pub fn reset(&mut self, now_ns: u64) {
        let now = u128::from(now_ns);
        *self = Self {
            since_ns: now_ns,
            changed_ns: now_ns,
            present: self.present,
            in_service: self.in_service,
            present_max: self.present,
            present_at_reset: self.present,
            present_arrived_ns: now * u128::from(self.present),
            ..Self::default()
        };
    }

    /// Returns the time from which a customer's time counts [ns]: its arrival, or the last [`Station::reset`] if that
    /// is later.
    #[inline]
    pub fn arrived_ns(&self, arrived_ns: u64) -> u64 {
        arrived_ns.max(self.since_ns)
    }

    /// Returns true if the identities hold.
    pub fn holds(&self, now_ns: u64) -> bool {
        let now = u128::from(now_ns);
        let area = self.present_area + (now - u128::from(self.changed_ns)) * u128::from(self.present);
        let held = now * u128::from(self.present) - self.present_arrived_ns;
        area == self.sojourn_ns_sum + held && self.arrivals + self.present_at_reset == self.departures + self.present
    }

    /// Returns the statistics up to now.
    pub fn report(&self, name: &str, servers: u64, now_ns: u64) -> StationReport {
        let mut here = self.clone();
        here.advance(now_ns);
        let elapsed_ns = now_ns - self.since_ns;
        let per = |sum: u128, count: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        StationReport {
            name: name.into(),
            servers,
            elapsed_ns,
            arrivals: here.arrivals,
            departures: here.departures,
            present: here.present,
            present_max: here.present_max,
            present_mean: per(here.present_area, elapsed_ns),
            queue_mean: per(here.present_area - here.service_area, elapsed_ns),
            utilisation: per(here.service_area, elapsed_ns * servers.max(1)),
            wait_ns_sum: here.wait_ns_sum as u64,
            wait_ns_max: here.wait_ns_max,
            wait_ns_mean: per(here.wait_ns_sum, here.starts),
            sojourn_ns_sum: here.sojourn_ns_sum as u64,
            sojourn_ns_mean: per(here.sojourn_ns_sum, here.departures),
            little: here.holds(now_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_customers_of_one_server() {
        let mut station = Station::default();
        station.arrive(0);
        station.start(0, 0);
        station.arrive(4);
        station.depart(10, 0);
        station.start(10, 4);
        station.depart(16, 4);
        let report = station.report("till", 1, 20);
        assert_eq!((report.wait_ns_sum, report.sojourn_ns_sum), (6, 22));
        let means = (report.present_mean, report.queue_mean, report.utilisation);
        assert_eq!(means, (22.0 / 20.0, 6.0 / 20.0, 16.0 / 20.0));
        assert!(report.little);
    }

    #[test]
    fn the_law_holds_while_somebody_is_here_and_after_a_warm_up() {
        let mut station = Station::default();
        station.arrive(5);
        station.start(7, 5);
        station.arrive(9);
        assert!(station.holds(9) && station.holds(1_000));
        station.reset(20);
        assert!(station.holds(30));
        station.depart(25, station.arrived_ns(5));
        assert!(station.holds(30));
        assert_eq!(station.report("x", 1, 30).present, 1);
    }

    #[test]
    fn a_departure_that_lies_about_its_arrival_is_noticed() {
        let mut station = Station::default();
        station.arrive(5);
        station.start(5, 5);
        station.arrive(6);
        station.start(6, 6);
        station.depart(9, 5);
        station.present_area += 1;
        assert!(!station.holds(9));
    }
}
