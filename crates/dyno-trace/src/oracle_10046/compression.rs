//! Compression of a file, detected from its first bytes.

use std::fmt;

/// Compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    Plain,
    /// gzip, one member or several.
    Gzip,
    /// xz, one stream or several.
    Xz,
    /// lzma, the predecessor of xz.
    Lzma,
    /// bzip2, one stream or several.
    Bzip2,
    /// zstd, one frame or several.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Compression::Plain => "plain",
            Compression::Gzip => "gzip",
            Compression::Xz => "xz",
            Compression::Lzma => "lzma",
            Compression::Bzip2 => "bzip2",
            Compression::Zstd => "zstd",
        })
    }
}

impl Compression {
    /// Detects the compression from the first bytes of a file. lzma has no signature: a file counts as lzma if its
    /// header has the usual properties byte, a power of two as dictionary size, and an unknown or plausible size.
    pub fn of(first: &[u8]) -> Self {
        match first {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Compression::Bzip2,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            [0x5d, 0, 0, d, e, ..] if u16::from_le_bytes([*d, *e]).is_power_of_two() => Compression::Lzma,
            _ => Compression::Plain,
        }
    }
}
