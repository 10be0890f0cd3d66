//! Program file of the server: its segments, its exported symbols, and the pointers that the loader fills in.
//!
//! All addresses are those of the file (`vaddr`); [`crate::process`] knows where the program is loaded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationFlags, RelocationTarget};

use crate::RecordError;

/// Symbol that the program exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Address of the symbol's first byte.
    pub addr: u64,
    /// Size [bytes].
    pub size: u64,
}

struct Segment {
    addr: u64,
    offset: u64,
    size: u64,
}

/// Program file, read completely.
pub struct Image {
    data: Vec<u8>,
    segments: Vec<Segment>,
    symbols: HashMap<String, Symbol>,
    /// Pointers that the loader writes, by their address.
    pointers: HashMap<u64, u64>,
    text: (u64, u64),
    /// Folder of the server's libraries.
    libraries: Option<PathBuf>,
    /// Address of the first loadable byte, which is at the base of the mapping.
    pub first: u64,
}

impl Image {
    /// Reads the program at `path`.
    ///
    /// # Errors
    /// The file cannot be read, is not an ELF program, or is not for x86-64.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let unreadable = |error: &dyn std::fmt::Display| RecordError::Program(format!("{}: {error}", path.display()));
        let data = std::fs::read(path).map_err(|error| unreadable(&error))?;
        let mut image = Self::parse(data).map_err(|error| match error {
            RecordError::Program(why) => unreadable(&why),
            other => other,
        })?;
        image.libraries = path.canonicalize().ok().and_then(|path| Some(path.parent()?.parent()?.join("lib")));
        Ok(image)
    }

    fn parse(data: Vec<u8>) -> Result<Self, RecordError> {
        let broken = |error: object::Error| RecordError::Program(error.to_string());
        let file = ElfFile64::<object::Endianness>::parse(&*data).map_err(broken)?;
        if file.architecture() != object::Architecture::X86_64 {
            return Err(RecordError::Architecture(format!("{:?}", file.architecture())));
        }
        let segments: Vec<Segment> = file
            .segments()
            .map(|segment| {
                let (offset, size) = segment.file_range();
                Segment { addr: segment.address(), offset, size }
            })
            .collect();
        let text = file
            .section_by_name(".text")
            .map(|section| (section.address(), section.size()))
            .ok_or_else(|| RecordError::Program("it has no code (.text)".to_owned()))?;
        let mut symbols = HashMap::new();
        for symbol in file.dynamic_symbols().filter(|symbol| symbol.address() != 0) {
            if let Ok(name) = symbol.name() {
                symbols.insert(name.to_owned(), Symbol { addr: symbol.address(), size: symbol.size() });
            }
        }
        let mut pointers = HashMap::new();
        for (at, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let is_relative = matches!(relocation.flags(), RelocationFlags::Elf { r_type } if r_type == object::elf::R_X86_64_RELATIVE);
            let base = match relocation.target() {
                RelocationTarget::Symbol(index) => file
                    .dynamic_symbol_table()
                    .and_then(|table| object::ObjectSymbolTable::symbol_by_index(&table, index).ok())
                    .map_or(0, |symbol| symbol.address()),
                _ if is_relative => 0,
                _ => continue,
            };
            let value = base.wrapping_add_signed(relocation.addend());
            if value != 0 {
                pointers.insert(at, value);
            }
        }
        let first = segments.iter().map(|segment| segment.addr).min().unwrap_or(0) & !0xfff;
        Ok(Self { data, segments, symbols, pointers, text, libraries: None, first })
    }

    /// Returns the exported symbol of this name.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name).copied()
    }

    /// Returns the exported symbol of this name.
    ///
    /// # Errors
    /// There is no such symbol.
    pub fn need(&self, name: &'static str) -> Result<Symbol, RecordError> {
        self.symbol(name).ok_or(RecordError::Symbol(name))
    }

    /// Returns true if the address of a function may be known outside of the code.
    ///
    /// That is so if the program's data contains it, or if a library of the server imports it by name. If no library
    /// is found it is unknown, so the result is true.
    pub fn is_handed_out(&self, addr: u64, name: &str) -> bool {
        let found = self.libraries.as_deref().map(|folder| libraries(folder, LIBRARIES_DEEP)).unwrap_or_default();
        let is_known = (1..=LIBRARIES_MOST).contains(&found.len());
        !is_known || self.pointers.values().any(|value| *value == addr) || found.iter().any(|at| asks_for(at, name))
    }

    /// Returns the file offset of the byte at address `addr`.
    pub fn file_offset(&self, addr: u64) -> Option<u64> {
        let holds = |segment: &&Segment| addr >= segment.addr && addr - segment.addr < segment.size;
        self.segments.iter().find(holds).map(|segment| addr - segment.addr + segment.offset)
    }

    /// Returns the bytes from `addr` to the end of its segment.
    pub fn bytes(&self, addr: u64) -> &[u8] {
        let holds = |segment: &&Segment| addr >= segment.addr && addr - segment.addr < segment.size;
        let Some(segment) = self.segments.iter().find(holds) else {
            return &[];
        };
        let from = (addr - segment.addr + segment.offset) as usize;
        let to = (segment.offset + segment.size) as usize;
        self.data.get(from..to.min(self.data.len())).unwrap_or(&[])
    }

    /// Returns the address of the code and its bytes.
    pub fn text(&self) -> (u64, &[u8]) {
        let bytes = self.bytes(self.text.0);
        (self.text.0, &bytes[..bytes.len().min(self.text.1 as usize)])
    }

    /// Returns the integer at `addr`, which has `size` bytes (1, 2, 4 or 8), as the program finds it when it starts.
    pub fn number(&self, addr: u64, size: usize) -> Option<u64> {
        if size == 8
            && let Some(value) = self.pointers.get(&addr)
        {
            return Some(*value);
        }
        let bytes = self.bytes(addr).get(..size)?;
        let mut whole = [0; 8];
        whole[..size].copy_from_slice(bytes);
        Some(u64::from_le_bytes(whole))
    }

    /// Returns the zero-terminated text at `addr`, or `None` if there is none.
    pub fn text_at(&self, addr: u64) -> Option<&str> {
        let bytes = self.bytes(addr);
        let end = bytes.iter().take(256).position(|byte| *byte == 0)?;
        std::str::from_utf8(&bytes[..end]).ok()
    }

    /// Returns the server version: what is between `PostgreSQL ` and ` on ` in the text of `version()`.
    pub fn server_version(&self) -> Option<String> {
        const BEGIN: &[u8] = b"PostgreSQL ";
        let mut rest = &self.data[..];
        while let Some(at) = rest.windows(BEGIN.len()).position(|window| window == BEGIN) {
            rest = &rest[at + BEGIN.len()..];
            let text = String::from_utf8_lossy(&rest[..rest.len().min(200)]);
            if let Some((version, _)) = text.split_once(" on ")
                && version.starts_with(|first: char| first.is_ascii_digit())
                && !version.contains('\0')
            {
                return Some(version.to_owned());
            }
        }
        None
    }
}

/// Depth of the search for the server's libraries below `lib`: `lib/postgresql`.
const LIBRARIES_DEEP: usize = 2;

/// Number of libraries above which a folder is not considered the server's own.
const LIBRARIES_MOST: usize = 500;

/// Returns the shared libraries of a folder and of its subfolders down to `deep` levels.
fn libraries(folder: &Path, deep: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && deep > 0 {
            found.extend(libraries(&path, deep - 1));
        } else if entry.file_name().to_string_lossy().contains(".so") {
            found.push(path);
        }
    }
    found
}

/// Returns true if a library imports a function of this name, or if the file cannot be read.
fn asks_for(library: &Path, name: &str) -> bool {
    let Ok(data) = std::fs::read(library) else { return true };
    let Ok(file) = ElfFile64::<object::Endianness>::parse(&*data) else { return false };
    file.dynamic_symbols().any(|symbol| symbol.is_undefined() && symbol.name() == Ok(name))
}
