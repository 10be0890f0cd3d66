//! Whatever a server sends as COPY's binary form, for whatever columns and torn anywhere: rows or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[low, high, step], bytes)) = data.split_first_chunk() else { return };
    dyno_move::rehearse::rehearse_copy(u16::from_le_bytes([low, high]), step, bytes);
});
