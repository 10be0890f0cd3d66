//! Any bytes as a Parquet file: described, hashed and encoded for a server, or refused, without a panic that gets out and
//! without memory that the file has not earned.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    static PLACE: OnceLock<std::path::PathBuf> = OnceLock::new();
    let place = PLACE.get_or_init(|| {
        // The reader of Parquet panics at some damage; ours makes an error of that, and the fuzzer's hook would not let it.
        std::panic::set_hook(Box::new(|_| ()));
        std::env::temp_dir().join(format!("dyno-fuzz-{}.parquet", std::process::id()))
    });
    std::fs::write(place, data).expect("the temporary folder takes it");
    let ended = std::panic::catch_unwind(|| dyno_move::rehearse::rehearse_file(place));
    if ended.is_err() {
        std::process::abort();
    }
});
