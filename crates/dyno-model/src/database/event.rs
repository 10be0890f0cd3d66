//! Wait events: Oracle's names and what p1 to p3 mean. Their classes come from the catalogue.

use dyno_evidence::catalogue::{self, Class, Engine};

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Event {
    /// A commit until its redo is safe and the session runs again. p1 buffer#, p2 sync scn.
    LogFileSync,
    /// The log writer's write. p1 files, p2 blocks, p3 requests.
    LogFileParallelWrite,
    /// Room in the log buffer.
    LogBufferSpace,
    /// The next log file.
    LogFileSwitchCompletion,
    /// The next log file, which still holds redo of blocks that are not written.
    LogFileSwitchCheckpoint,
    /// Control file. p1 files, p2 blocks, p3 requests.
    ControlFileParallelWrite,
    /// The right to take room in a strand of the log buffer. p1 address, p2 number, p3 tries.
    LatchRedoAllocation,
    /// A free buffer. p1 file#, p2 block#, p3 set-id#.
    FreeBufferWaits,
    /// A buffer that is being written and shall be changed. p1 file#, p2 block#, p3 id.
    WriteCompleteWaits,
    /// A block that another session reads. p1 file#, p2 block#, p3 class#.
    ReadByOtherSession,
    /// One block into a buffer. p1 file#, p2 block#, p3 blocks.
    DbFileSequentialRead,
    /// Several blocks into buffers. p1 file#, p2 block#, p3 blocks.
    DbFileScatteredRead,
    /// Several blocks past the buffers. p1 file number, p2 first dba, p3 block count.
    DirectPathRead,
    /// The same from temporary space.
    DirectPathReadTemp,
    /// The same to temporary space.
    DirectPathWriteTemp,
    /// The database writer, for a part of its writes. p1 requests, p2 interrupt, p3 timeout.
    DbFileParallelWrite,
    /// One block from a storage cell. p1 cellhash#, p2 diskhash#, p3 bytes.
    CellSingleBlock,
    /// Several blocks from a storage cell. p1 cellhash#, p2 diskhash#, p3 bytes.
    CellMultiblock,
    /// A scan that the cells do. p1 cellhash#.
    CellSmartTableScan,
    /// A core, when the time slice is over and others wait.
    CpuQueue,
    /// Nothing to do: the client thinks. p1 driver id, p2 bytes.
    ClientMessage,
    /// A background process's sleep. p1 timeout in hundredths of a second.
    RdbmsIpcMessage,
}

impl Event {
    /// All of them, in order of their numbers.
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

    /// The engine's name; for the CPU queue, which has none, ours.
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

    /// The engine's own class of it.
    pub fn group(self) -> &'static str {
        self.row().map_or(Class::Cpu.name(), |row| row.engine_class)
    }

    /// The common class, by which engines are compared.
    pub fn class(self) -> &'static str {
        self.row().map_or(Class::Cpu, |row| row.class).name()
    }

    /// What the catalogue has of it: all but the CPU queue, which no engine tells of.
    fn row(self) -> Option<&'static catalogue::Event> {
        catalogue::find(Engine::Oracle, "", self.name())
    }

    /// Is it a wait for work rather than for a resource?
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
