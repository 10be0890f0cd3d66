//! Search for the end of a line in place. The lines are short: calling a general search costs as much as the search.

/// Bytes that are looked at at once.
const BLOCK: usize = 32;

/// Returns the position of the first byte from `from` on that is wanted. It may return `None` although there is one, if
/// fewer than 32 bytes follow: the careful path decides then.
#[inline(always)]
pub(super) fn find(bytes: &[u8], from: usize, is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let mut at = from;
    loop {
        let block: &[u8; BLOCK] = bytes.get(at..)?.first_chunk()?;
        let mut found = [0_u8; BLOCK];
        found.iter_mut().zip(block).for_each(|(found, byte)| *found = u8::from(is_wanted(*byte)));
        let eights = found.as_chunks().0;
        if eights.iter().fold(0, |any, eight| any | u64::from_le_bytes(*eight)) != 0 {
            let empty = eights.iter().take_while(|eight| **eight == [0; 8]).count();
            return Some(at + 8 * empty + (u64::from_le_bytes(eights[empty]).trailing_zeros() / 8) as usize);
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
                assert_eq!(find(&bytes, from, |byte| byte == b'\n'), Some(len), "{from} {len}");
            }
            let later = find(&bytes, len + 1, |byte| byte == b'\n' || byte == b'y');
            assert_eq!(later, Some(len + 3));
            assert_eq!(find(&bytes, len + 4, |byte| byte == b'\n'), None);
        }
    }

    #[test]
    fn near_the_end_and_behind_it_nothing_is_found() {
        assert_eq!(find(b"a\n", 0, |byte| byte == b'\n'), None);
        assert_eq!(find(&[b'\n'; 40], 9, |byte| byte == b'\n'), None);
        assert_eq!(find(&[b'\n'; 40], 41, |byte| byte == b'\n'), None);
    }
}
