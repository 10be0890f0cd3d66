//! Wait events: Oracle's names and the meaning of p1 to p3; their classes come from the catalogue.

use dyno_evidence::catalogue::{self, Class, Engine};

/// Wait event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Event {
    /// Wait of a commit until its redo is safe and the session runs again. p1 buffer#, p2 sync scn.
    LogFileSync,
    /// The log writer's write. p1 files, p2 blocks, p3 requests.
    LogFileParallelWrite,
    /// Wait for space in the log buffer.
    LogBufferSpace,
    /// Wait for the next log file.
    LogFileSwitchCompletion,
    /// Wait for the next log file, which still has redo of blocks that are not written.
    LogFileSwitchCheckpoint,
    /// Write of the control file. p1 files, p2 blocks, p3 requests.
    ControlFileParallelWrite,
    /// Wait for the latch that protects a strand of the log buffer. p1 address, p2 number, p3 tries.
    LatchRedoAllocation,
    /// Wait for a free buffer. p1 file#, p2 block#, p3 set-id#.
    FreeBufferWaits,
    /// Wait for a buffer that is being written and must be changed. p1 file#, p2 block#, p3 id.
    WriteCompleteWaits,
    /// Wait for a block that another session reads. p1 file#, p2 block#, p3 class#.
    ReadByOtherSession,
    /// Read of one block into a buffer. p1 file#, p2 block#, p3 blocks.
    DbFileSequentialRead,
    /// Read of several blocks into buffers. p1 file#, p2 block#, p3 blocks.
    DbFileScatteredRead,
    /// Read of several blocks past the buffers. p1 file number, p2 first dba, p3 block count.
    DirectPathRead,
    /// Read of several blocks from temporary space.
    DirectPathReadTemp,
    /// Write of several blocks to temporary space.
    DirectPathWriteTemp,
    /// Wait of the database writer for a part of its writes. p1 requests, p2 interrupt, p3 timeout.
    DbFileParallelWrite,
    /// Read of one block from a storage cell. p1 cellhash#, p2 diskhash#, p3 bytes.
    CellSingleBlock,
    /// Read of several blocks from a storage cell. p1 cellhash#, p2 diskhash#, p3 bytes.
    CellMultiblock,
    /// Scan by the storage cells. p1 cellhash#.
    CellSmartTableScan,
    /// Wait for a core after the process has used up its time slice while others wait.
    CpuQueue,
    /// Think time of the client. p1 driver id, p2 bytes.
    ClientMessage,
    /// Sleep of a background process. p1 timeout in hundredths of a second.
    RdbmsIpcMessage,
}

impl Event {
    /// All events in order of their numbers.
    pub const ALL: [Self; 22] = [
        Self::LogFileSync,
        Self::LogFileParallelWrite,
        Self::LogBufferSpace,
        Self::LogFileSwitchCompletion,
        Self::LogFileSwitchCheckpoint,
        Self::ControlFileParallelWrite,
        Self::LatchRedoAllocation,
        Self::FreeBufferWaits,
        Self::WriteCompleteWaits,
        Self::ReadByOtherSession,
        Self::DbFileSequentialRead,
        Self::DbFileScatteredRead,
        Self::DirectPathRead,
        Self::DirectPathReadTemp,
        Self::DirectPathWriteTemp,
        Self::DbFileParallelWrite,
        Self::CellSingleBlock,
        Self::CellMultiblock,
        Self::CellSmartTableScan,
        Self::CpuQueue,
        Self::ClientMessage,
        Self::RdbmsIpcMessage,
    ];

    /// Returns the engine's name of the event; the CPU queue, which engines do not report, is called `cpu queue`.
    pub fn name(self) -> &'static str {
        match self {
            Self::LogFileSync => "log file sync",
            Self::LogFileParallelWrite => "log file parallel write",
            Self::LogBufferSpace => "log buffer space",
            Self::LogFileSwitchCompletion => "log file switch completion",
            Self::LogFileSwitchCheckpoint => "log file switch (checkpoint incomplete)",
            Self::ControlFileParallelWrite => "control file parallel write",
            Self::LatchRedoAllocation => "latch: redo allocation",
            Self::FreeBufferWaits => "free buffer waits",
            Self::WriteCompleteWaits => "write complete waits",
            Self::ReadByOtherSession => "read by other session",
            Self::DbFileSequentialRead => "db file sequential read",
            Self::DbFileScatteredRead => "db file scattered read",
            Self::DirectPathRead => "direct path read",
            Self::DirectPathReadTemp => "direct path read temp",
            Self::DirectPathWriteTemp => "direct path write temp",
            Self::DbFileParallelWrite => "db file parallel write",
            Self::CellSingleBlock => "cell single block physical read",
            Self::CellMultiblock => "cell multiblock physical read",
            Self::CellSmartTableScan => "cell smart table scan",
            Self::CpuQueue => "cpu queue",
            Self::ClientMessage => "SQL*Net message from client",
            Self::RdbmsIpcMessage => "rdbms ipc message",
        }
    }

    /// Returns the class of the event in the engine.
    pub fn group(self) -> &'static str {
        self.row().map_or(Class::Cpu.name(), |row| row.engine_class)
    }

    /// Returns the engine-independent class of the event.
    pub fn class(self) -> &'static str {
        self.row().map_or(Class::Cpu, |row| row.class).name()
    }

    /// Returns the row in the catalogue; the CPU queue has none, since no engine reports it.
    fn row(self) -> Option<&'static catalogue::Event> {
        catalogue::find(Engine::Oracle, "", self.name())
    }

    /// Returns true if the event is a wait for work and not for a resource.
    pub fn is_idle(self) -> bool {
        matches!(self, Self::ClientMessage | Self::RdbmsIpcMessage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_but_the_cpu_queue_stands_in_the_catalogue_by_its_own_name() {
        for event in Event::ALL {
            assert_eq!(event.row().map(|row| row.event), (event != Event::CpuQueue).then(|| event.name()));
        }
        assert_eq!((Event::CpuQueue.group(), Event::CpuQueue.class()), ("CPU", "CPU"));
        assert!(Event::ALL.into_iter().all(|event| event.is_idle() == (event.class() == Class::Idle.name())));
    }
}
