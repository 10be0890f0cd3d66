//! Single file, or stdout, for the rows of all chunks: workers write it in turn, in the order in which rows arrive.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};

use crate::aside::TemporaryFile;
use crate::error::MoveError;
use crate::spec::{Form, SingleSpec};

/// Size of the write buffer [bytes].
const ROOM_BYTES: usize = 1 << 20;

type Out = BufWriter<File>;

enum Writer {
    Arrow(FileWriter<Out>),
    Stream(StreamWriter<Out>),
    Csv(Out),
}

/// Single file of a job, shared by its workers.
pub struct Single {
    /// Writer; `None` once the file is finished.
    writer: Mutex<Option<Writer>>,
    aside: Mutex<Option<TemporaryFile>>,
    place: PathBuf,
}

impl Single {
    /// Opens the file and writes its header.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(spec: &SingleSpec, schema: &SchemaRef) -> Result<Self, MoveError> {
        let place = spec.path.clone().unwrap_or_else(|| "stdout".into());
        let (aside, file) = if let Some(path) = &spec.path {
            let (aside, file) = TemporaryFile::create(path)?;
            (Some(aside), file)
        } else {
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            (None, File::from(stdout.map_err(|e| MoveError::io(&place, &e))?))
        };
        let mut out = BufWriter::with_capacity(ROOM_BYTES, file);
        let failed = |e: &ArrowError| MoveError::arrow(&place, e);
        let writer = match spec.form {
            Form::Arrow => Writer::Arrow(FileWriter::try_new(out, schema).map_err(|e| failed(&e))?),
            Form::Stream => Writer::Stream(StreamWriter::try_new(out, schema).map_err(|e| failed(&e))?),
            Form::Csv => {
                out.write_all(spec.head.as_bytes()).map_err(|e| MoveError::io(&place, &e))?;
                Writer::Csv(out)
            }
        };
        Ok(Self { writer: Mutex::new(Some(writer)), aside: Mutex::new(aside), place })
    }

    /// Writes rows in Arrow's form; does nothing for CSV.
    ///
    /// # Errors
    /// The file cannot be written, or is finished already.
    pub fn write(&self, batch: &RecordBatch) -> Result<(), MoveError> {
        self.with(|writer| match writer {
            Writer::Arrow(writer) => writer.write(batch),
            Writer::Stream(writer) => writer.write(batch),
            Writer::Csv(_) => Ok(()),
        })
    }

    /// Writes rows in the server's text form; does nothing for Arrow.
    ///
    /// # Errors
    /// The file cannot be written, or is finished already.
    pub fn write_text(&self, text: &[u8]) -> Result<(), MoveError> {
        self.with(|writer| match writer {
            Writer::Csv(out) => out.write_all(text).map_err(ArrowError::from),
            Writer::Arrow(_) | Writer::Stream(_) => Ok(()),
        })
    }

    /// Writes the end of the file, and publishes the file under its name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(&self) -> Result<(), MoveError> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(writer) = writer else { return Ok(()) };
        let out = match writer {
            Writer::Arrow(mut writer) => writer.finish().and_then(|()| writer.into_inner()),
            Writer::Stream(mut writer) => writer.finish().and_then(|()| writer.into_inner()),
            Writer::Csv(out) => Ok(out),
        };
        let mut out = out.map_err(|e| MoveError::arrow(&self.place, &e))?;
        out.flush().map_err(|e| MoveError::io(&self.place, &e))?;
        match self.aside.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(aside) => aside.publish(out.get_ref()).map(|_| ()),
            None => Ok(()),
        }
    }

    fn with(&self, write: impl FnOnce(&mut Writer) -> Result<(), ArrowError>) -> Result<(), MoveError> {
        let mut held = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = held.as_mut() else { return Err(MoveError::Stopped) };
        write(writer).map_err(|e| MoveError::arrow(&self.place, &e))
    }
}
