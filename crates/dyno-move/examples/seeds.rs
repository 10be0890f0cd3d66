//! Writes the fuzzers' seed inputs into `<folder>/read_parquet` and `copy_rows`.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use dyno_move::rehearse::table;
use dyno_move::{Columns, Cutter, Kind, Sink};

const ALL: u16 = u16::MAX;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: seeds FOLDER")?);
    let (files, streams) = (folder.join("read_parquet"), folder.join("copy_rows"));
    fs::create_dir_all(&files)?;
    fs::create_dir_all(&streams)?;
    for (number, bits) in [ALL, 1 << 12, 1 << 15 | 1 << 3, 1 << 7, 0x0f00].into_iter().enumerate() {
        for rows in [0, 3, 40] {
            let stream = stream(bits, rows);
            let options = [bits.to_le_bytes().as_slice(), &[200]].concat();
            fs::write(streams.join(format!("seed-{number}-{rows}")), [options.as_slice(), &stream].concat())?;
            let table = table(bits);
            let mut columns = Columns::new(&table, 1 << 20);
            let place = files.join(format!("seed-{number}-{rows}"));
            let mut sink = Sink::create(&place, Arc::clone(columns.schema()), 1, 1 << 20)?;
            let mut cutter = Cutter::new(table.columns.len());
            cutter.push(&stream, |row| columns.push(row).map(|_| ()))?;
            sink.write(&columns.take()?)?;
            sink.finish()?;
        }
    }
    Ok(())
}

/// Returns rows in COPY's binary form; every fifth value is NULL.
fn stream(bits: u16, rows: u8) -> Vec<u8> {
    let columns = table(bits).columns;
    let mut out = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for row in 0..rows {
        out.extend((columns.len() as i16).to_be_bytes());
        for (place, column) in columns.iter().enumerate() {
            if (place + usize::from(row)) % 5 == 4 {
                out.extend((-1_i32).to_be_bytes());
                continue;
            }
            let value = value(column.kind, row);
            out.extend((value.len() as i32).to_be_bytes());
            out.extend(value);
        }
    }
    out.extend((-1_i16).to_be_bytes());
    out
}

fn value(kind: Kind, row: u8) -> Vec<u8> {
    match kind {
        Kind::Bool => vec![row & 1],
        Kind::Int2 => vec![0, row],
        Kind::Int4 | Kind::Oid | Kind::Float4 | Kind::Date => vec![0, 0, 7, row],
        Kind::Decimal => vec![0, 1, 0, 0, 0, 0, 0, 2, 0, row],
        Kind::Text => format!("text {}", row % 3).into_bytes(),
        Kind::Jsonb => [b"\x01{\"a\": ", row.to_string().as_bytes(), b"}"].concat(),
        Kind::Uuid => vec![row; 16],
        Kind::Bytea => vec![row; usize::from(row)],
        _ => vec![0, 0, 0, 0, 0, 0, 1, row],
    }
}
