//! Encoding of a file into the bytes that a server accepts, piece by piece: COPY's binary form, or `LOAD DATA` lines.

use std::path::Path;

use arrow_array::RecordBatch;

use crate::encode::{At, Place, end, head, rows};
use crate::error::MoveError;
use crate::field::has_long;
use crate::hash::{Tally, hash_batch};
use crate::lines::lines;
use crate::read_back::{Batches, open};
use crate::spec::Refused;

/// Reads a file and encodes its rows.
pub(crate) struct Encoder {
    batches: Batches,
    batch: Option<RecordBatch>,
    at: At,
    has_long: bool,
    place: Place,
    tally: Tally,
    form: Form,
    begun: bool,
}

/// Output form of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// COPY's binary form with header and end marker.
    Copy,
    /// Rows in COPY's binary form, without header and end marker.
    Rows,
    /// Lines for `LOAD DATA`.
    Lines,
}

impl Encoder {
    /// Opens a file; batches have at most `bytes_max` bytes.
    ///
    /// `place` determines which parts of its position each row contains.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn open(
        path: &Path,
        groups: Option<(usize, usize)>,
        bytes_max: usize,
        place: Place,
        form: Form,
    ) -> Result<Self, MoveError> {
        let batches = open(path, bytes_max, groups)?;
        Ok(Self {
            batches,
            batch: None,
            at: At::default(),
            has_long: false,
            place,
            tally: Tally::default(),
            form,
            begun: false,
        })
    }

    /// Appends up to about `limit` bytes; returns true if there is more.
    ///
    /// # Errors
    /// The file cannot be read, or the server cannot accept a row.
    pub fn more(&mut self, limit: usize, out: &mut Vec<u8>) -> Result<bool, MoveError> {
        if !self.begun && self.form == Form::Copy {
            head(out);
        }
        self.begun = true;
        if self.batch.as_ref().is_none_or(|batch| self.at.row >= batch.num_rows()) {
            self.place.before += self.batch.take().map_or(0, |batch| batch.num_rows() as u64);
            (self.batch, self.at) = (self.batches.next().transpose()?, At::default());
            if let Some(batch) = &self.batch {
                self.has_long = has_long(batch);
                self.tally = self.tally.plus(hash_batch(batch)?);
            }
        }
        match &self.batch {
            Some(batch) if self.form == Form::Lines => {
                self.at.row = lines(batch, self.at.row, limit, &mut self.place, out)?;
            }
            Some(batch) => rows(batch, &mut self.at, self.has_long, limit, &mut self.place, out)?,
            None if self.form == Form::Copy => end(out),
            None => {}
        }
        Ok(self.batch.is_some())
    }

    /// Returns the number of rows so far, and the sum of their hashes.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the rows that were left out because the server cannot accept them.
    pub(crate) fn refused(self) -> Vec<Refused> {
        self.place.refused
    }
}
