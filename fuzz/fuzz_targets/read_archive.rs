//! Any bytes as an archive: read to an end or refused, without a panic and without unpacking for ever. The
//! first byte says whether they are taken as they are or packed first, so that damage inside a good
//! archive is reached too.
#![no_main]

use std::io::Write;
use std::sync::OnceLock;

use dyno_trace::oracle_10046::files::{ReadOptions, read_file};
use dyno_trace::oracle_10046::input::Source;
use dyno_trace::oracle_10046::refusal::Refusal;
use libfuzzer_sys::fuzz_target;

fn packed(kind: u8, text: &[u8]) -> Vec<u8> {
    let bytes = match kind & 3 {
        0 => return text.to_vec(),
        1 => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text).and_then(|()| encoder.finish())
        }
        2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(text).and_then(|()| encoder.finish())
        }
        _ => zstd::encode_all(text, 1),
    };
    bytes.expect("memory takes everything")
}

fuzz_target!(|data: &[u8]| {
    static PLACE: OnceLock<std::path::PathBuf> = OnceLock::new();
    let place = PLACE.get_or_init(|| std::env::temp_dir().join(format!("dyno-fuzz-{}.trc", std::process::id())));
    let Some((&[kind, flip], text)) = data.split_first_chunk() else { return };
    let mut bytes = packed(kind, text);
    if kind & 4 != 0 && !bytes.is_empty() {
        let at = usize::from(flip) * bytes.len() / 256;
        bytes[at] ^= 1 << (kind >> 5);
    }
    std::fs::write(place, &bytes).expect("the temporary folder takes it");
    let options = ReadOptions { threads: usize::from(kind >> 3 & 1), ..ReadOptions::default() };
    let mut text_bytes = 0u64;
    let ended = read_file::<Refusal>(&Source::File(place.clone()), &options, &mut |batch| {
        text_bytes += batch.bytes.len() as u64;
        Ok(batch)
    });
    assert!(text_bytes <= (65 << 20) + 500 * bytes.len() as u64, "{ended:?}");
});
