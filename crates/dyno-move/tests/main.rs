//! Tests of the room, through its public face.

mod files;
