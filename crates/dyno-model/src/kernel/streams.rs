//! Named random streams from one seed.
//!
//! Each component draws from its own streams, named after it and the purpose (`"session 3/think"`). The draws of one
//! component change nothing for another; and two arms of a study that share a seed get the same think times, keys and
//! seeks, so that their difference comes from the arms and not from the random numbers (common random numbers).

use dyno_stats::rng::{Xoshiro256, splitmix64};

use super::sample::Stream;

/// Random streams from one seed.
#[derive(Clone, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// Returns streams from a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns the stream of that name.
    pub fn named(&self, name: &str) -> Stream {
        let mut state = self.seed;
        let mut state = splitmix64(&mut state) ^ fnv1a(name.as_bytes());
        Stream::new(Xoshiro256::new(splitmix64(&mut state)))
    }

    /// Returns the seed of a replication: different for each number, and from the seed itself.
    pub fn replication_seed(seed: u64, number: u64) -> u64 {
        let mut state = seed ^ number.wrapping_mul(0xd134_2543_de82_ef95);
        splitmix64(&mut state);
        splitmix64(&mut state)
    }
}

/// Returns the FNV-1a hash, 64 bits: the same on every machine and in every version.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the hash against the test vectors of its authors.
    #[test]
    fn the_hash_is_fnv1a() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_stream_depends_on_seed_and_name_only() {
        let draw = |seed, name: &str| Streams::new(seed).named(name).next_u64();
        assert_eq!(draw(1, "disk"), draw(1, "disk"));
        assert_ne!(draw(1, "disk"), draw(1, "disc"));
        assert_ne!(draw(1, "disk"), draw(2, "disk"));
        assert_ne!(Streams::replication_seed(1, 0), Streams::replication_seed(1, 1));
    }
}
