//! State that all sessions of a recording share.

/// Value of the class `Activity` in an event's number.
const ACTIVITY: u32 = 0x05;

/// State that all sessions share: event numbers, running numbers, costs.
pub struct Known {
    /// Number of the event `Client:ClientRead`.
    pub client_read: u32,
    /// Number of the next call.
    pub next_call: u64,
    /// Number of the next wait.
    pub next_wait: u64,
    /// Cost of the current note's probe [ns].
    pub price_ns: u64,
    /// Class of waits that is no longer recorded if the current note's probe is removed; 0 if there is none.
    pub class: u8,
    /// Time spent in waits of each class since the last check [ns].
    pub waited_ns: [u64; 16],
    /// Process id of the session that held the resource for which the ending wait waited; 0 if unknown.
    pub holder: i32,
    /// Largest possible error of the ending wait's length [ns]; 0 if the wait was timed exactly.
    pub within_ns: u64,
}

impl Known {
    /// Returns the state of a recording without sessions; `client_read` is the number of the event `Client:ClientRead`.
    pub fn of(client_read: u32) -> Self {
        Self {
            client_read,
            next_call: 0,
            next_wait: 0,
            price_ns: 0,
            class: 0,
            waited_ns: [0; 16],
            holder: 0,
            within_ns: 0,
        }
    }

    /// Returns true if the process does no work during the event: it waits for the client, or is an idle background
    /// process.
    pub(super) fn is_idle(&self, event: u32) -> bool {
        event == self.client_read || event >> 24 == ACTIVITY
    }
}
