//! Pseudo-random numbers, with the same draws as pgbench 15 to 18.
//!
//! The generator is xoroshiro128** 1.0. Its state is filled by splitmix64. Both are by David Blackman and Sebastiano
//! Vigna (public domain, <https://prng.di.unimi.it/>).

/// Random number generator of one session: xoroshiro128**.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 2],
}

impl Rng {
    /// Creates a generator whose state is filled from 64 bits.
    pub fn new(seed: u64) -> Self {
        let mut mixer = seed;
        let state = [splitmix64(&mut mixer), splitmix64(&mut mixer)];
        if state == [0, 0] {
            // The only state that never changes. `PostgreSQL` replaces it by Knuth's MMIX constants.
            return Self { state: [0x5851_F42D_4C95_7F2D, 0x1405_7B7E_F767_814F] };
        }
        Self { state }
    }

    /// Returns the next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [first, second] = self.state;
        let mixed = first ^ second;
        self.state = [first.rotate_left(24) ^ mixed ^ (mixed << 16), mixed.rotate_left(37)];
        first.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// Draws uniformly from 0 to `largest`, both included, without bias.
    ///
    /// It draws numbers with the bit length of `largest` until one is not greater (fewer than two draws on average).
    #[inline]
    pub fn up_to(&mut self, largest: u64) -> u64 {
        if largest == 0 {
            return 0; // and draws nothing
        }
        let shift = largest.leading_zeros();
        loop {
            let candidate = self.next_u64() >> shift;
            if candidate <= largest {
                return candidate;
            }
        }
    }

    /// Draws uniformly from [0, 1), with 52 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 52) as f64;
        (self.next_u64() >> 12) as f64 * STEP
    }

    /// Draws from a normal distribution with mean 0 and standard deviation 1.
    ///
    /// The method is the sine branch of the Box-Muller transform.
    pub fn normal(&mut self) -> f64 {
        let radius = 1.0 - self.unit();
        let angle = 1.0 - self.unit();
        (-2.0 * radius.ln()).sqrt() * (2.0 * std::f64::consts::PI * angle).sin()
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Source of the generators of a run's sessions, in pgbench's order, from one number.
///
/// ```
/// use dyno_script::Seeds;
///
/// let mut seeds = Seeds::new(7); // pgbench --random-seed=7
/// let (mut client_0, mut client_1) = (seeds.session(), seeds.session());
/// assert_ne!(client_0.next_u64(), client_1.next_u64());
/// let _for_hash_functions: i64 = seeds.default_seed(2); // the value of :default_seed
/// ```
#[derive(Debug, Clone)]
pub struct Seeds {
    next: Rng,
    first: Rng,
}

impl Seeds {
    /// Creates the source from the number given to pgbench as `--random-seed`.
    pub fn new(random_seed: u64) -> Self {
        let first = Rng::new(random_seed);
        Self { next: first.clone(), first }
    }

    /// Returns the generator of the next session: client 0, 1, 2, ...
    pub fn session(&mut self) -> Rng {
        Rng::new(self.next.next_u64())
    }

    /// Returns the value of `:default_seed` in a run with this number of clients.
    ///
    /// pgbench draws it after the seeds of all clients. It does not depend on how many sessions were requested here.
    pub fn default_seed(&self, clients: usize) -> i64 {
        let mut root = self.first.clone();
        for _ in 0..clients {
            root.next_u64();
        }
        root.next_u64() as i64
    }
}
