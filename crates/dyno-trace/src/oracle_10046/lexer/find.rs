//! Search for the end of a line, inlined into its callers: lines are so short that calling a general search function
//! costs as much as the search itself.

use dyno_cpu::{BLOCK, equal_to};

/// Returns the position of the first byte from `from` on that is `one` or `other`. If fewer than 32 bytes follow, it
/// may return `None` although there is such a byte: the careful path then decides.
#[inline(always)]
pub(super) fn find(bytes: &[u8], from: usize, one: u8, other: u8) -> Option<usize> {
    let mut at = from;
    loop {
        let block: &[u8; BLOCK] = bytes.get(at..)?.first_chunk()?;
        let found = equal_to(block, one, other);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize);
        }
        at += BLOCK;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wanted_byte_is_found_wherever_it_is() {
        for len in 0..200 {
            let mut bytes = vec![b'x'; len + 64];
            bytes[len] = b'\n';
            bytes[len + 3] = b'\n';
            for from in 0..=len {
                assert_eq!(find(&bytes, from, b'\n', b'\n'), Some(len), "{from} {len}");
            }
            let later = find(&bytes, len + 1, b'\n', b'y');
            assert_eq!(later, Some(len + 3));
            assert_eq!(find(&bytes, len + 4, b'\n', b'\n'), None);
        }
    }

    #[test]
    fn near_the_end_and_behind_it_nothing_is_found() {
        assert_eq!(find(b"a\n", 0, b'\n', b'\n'), None);
        assert_eq!(find(&[b'\n'; 40], 9, b'\n', b'\n'), None);
        assert_eq!(find(&[b'\n'; 40], 41, b'\n', b'\n'), None);
    }
}
