//! Oracle's events and their common classes, in one table.
//!
//! A class is found by the longest known beginning of the name; what is not known is `other`. The
//! grouping follows Oracle's own wait classes (Reference, appendix "Oracle Wait Events"), with these
//! differences: `cluster` holds what one instance waits for of another, `scheduler` what the resource
//! manager makes a session wait for (it has work and is not let run), and User I/O and System I/O are
//! divided by reading and writing. A shared server that waits for work is idle; the virtual circuit
//! that carries a request is network.

use super::{CLASSES, OTHER};

/// Beginnings of names and their classes.
const BEGINNINGS: [(&str, &str); 112] = [
    ("ARCH wait", "log write"),
    ("ASM background timer", "idle"),
    ("BFILE", "data read"),
    ("CRS call completion", "cluster"),
    ("DFS lock handle", "cluster"),
    ("DIAG idle wait", "idle"),
    ("DLM ", "cluster"),
    ("Datapump dump file I/O", "data read"),
    ("Disk file Mirror", "data read"),
    ("Disk file operations I/O", "data read"),
    ("GCR sleep", "idle"),
    ("HS message to agent", "network"),
    ("IPC send completion sync", "cluster"),
    ("KSV master wait", "idle"),
    ("LGWR", "log write"),
    ("LMON global data update", "cluster"),
    ("LMS CR slave timer", "idle"),
    ("LNS", "log write"),
    ("LNS wait", "log write"),
    ("PING", "idle"),
    ("PL/SQL lock timer", "idle"),
    ("PX Deq", "idle"),
    ("PX Deq Credit: need buffer", "idle"),
    ("PX Deq: Execution Msg", "idle"),
    ("PX Idle Wait", "idle"),
    ("SQL*Net", "network"),
    ("Space Manager: slave idle wait", "idle"),
    ("Streams AQ: waiting", "idle"),
    ("TCP Socket", "network"),
    ("Virtual Circuit", "network"),
    ("acknowledge over PGA limit", "scheduler"),
    ("buffer busy", "latch"),
    ("cell ", "data read"),
    ("cell smart flash", "data write"),
    ("class slave wait", "idle"),
    ("control file", "data read"),
    ("control file parallel write", "data write"),
    ("control file single write", "data write"),
    ("cursor:", "latch"),
    ("cursor: pin S wait on X", "lock"),
    ("db file", "data read"),
    ("db file async I/O submit", "data write"),
    ("db file parallel write", "data write"),
    ("db file single write", "data write"),
    ("db flash cache", "data read"),
    ("db flash cache write", "data write"),
    ("direct path read", "data read"),
    ("direct path sync", "data write"),
    ("direct path write", "data write"),
    ("dispatcher listen timer", "network"),
    ("dispatcher shutdown", "idle"),
    ("dispatcher timer", "idle"),
    ("enq:", "lock"),
    ("enqueue", "lock"),
    ("external table read", "data read"),
    ("external table write", "data write"),
    ("free buffer", "free buffer"),
    ("gc ", "cluster"),
    ("gc buffer busy", "cluster"),
    ("gcs ", "cluster"),
    ("gcs for action", "idle"),
    ("gcs remote message", "idle"),
    ("ges ", "cluster"),
    ("ges LMON", "idle"),
    ("ges remote message", "idle"),
    ("ges reusing os pid", "idle"),
    ("global cache", "cluster"),
    ("global enqueue", "cluster"),
    ("ipc ", "cluster"),
    ("jobq slave wait", "idle"),
    ("kjbdrmcvtq lmon drm quiesce", "cluster"),
    ("latch", "latch"),
    ("library cache load lock", "lock"),
    ("library cache lock", "lock"),
    ("library cache pin", "lock"),
    ("library cache: bucket mutex", "latch"),
    ("library cache: mutex", "latch"),
    ("listen endpoint status", "idle"),
    ("lms flush message acks", "cluster"),
    ("local write wait", "data write"),
    ("log buffer space", "log write"),
    ("log file parallel write", "log write"),
    ("log file sequential read", "data read"),
    ("log file single write", "log write"),
    ("log file switch", "log write"),
    ("log file sync", "commit"),
    ("log switch", "log write"),
    ("name-service call wait", "cluster"),
    ("pi renounce write complete", "cluster"),
    ("pipe get", "idle"),
    ("pmon timer", "idle"),
    ("rdbms ipc message", "idle"),
    ("read by other session", "data read"),
    ("remote db", "network"),
    ("resmgr:", "scheduler"),
    ("retry contact SCN lock master", "cluster"),
    ("row cache lock", "lock"),
    ("row cache mutex", "latch"),
    ("row cache read", "latch"),
    ("securefile direct-read", "data read"),
    ("securefile direct-write", "data write"),
    ("shared server idle wait", "idle"),
    ("single-task message", "idle"),
    ("smon timer", "idle"),
    ("utl_file I/O", "data read"),
    ("virtual circuit", "network"),
    ("virtual circuit next request", "idle"),
    ("virtual circuit status", "idle"),
    ("virtual circuit wait", "network"),
    ("wait for unread message", "idle"),
    ("wait list latch", "latch"),
    ("write complete waits", "free buffer"),
];

/// Number in [`CLASSES`] of an event's class.
pub fn class_of(event: &str) -> u8 {
    BEGINNINGS
        .iter()
        .filter(|(beginning, _)| event.starts_with(beginning))
        .max_by_key(|(beginning, _)| beginning.len())
        .and_then(|(_, class)| CLASSES.iter().position(|known| known == class))
        .map_or(OTHER, |at| at as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str) -> &'static str {
        CLASSES[usize::from(class_of(name))]
    }

    #[test]
    fn the_longest_known_beginning_tells_the_class() {
        assert_eq!(class("log file sync"), "commit");
        assert_eq!(class("db file sequential read"), "data read");
        assert_eq!(class("db file parallel write"), "data write");
        assert_eq!(class("enq: TX - row lock contention"), "lock");
        assert_eq!(class("cursor: pin S wait on X"), "lock");
        assert_eq!(class("cursor: pin S"), "latch");
        assert_eq!(class("SQL*Net more data to client"), "network");
        assert_eq!(class("no such event"), "other");
    }

    #[test]
    fn waits_for_another_instance_are_cluster_not_network() {
        for name in
            ["gc cr block 2-way", "gc current block busy", "gc buffer busy acquire", "ges message buffer allocation"]
        {
            assert_eq!(class(name), "cluster", "{name}");
        }
        for name in ["gcs remote message", "ges remote message", "DIAG idle wait"] {
            assert_eq!(class(name), "idle", "{name}");
        }
    }

    #[test]
    fn the_resource_manager_is_the_scheduler_not_cpu() {
        assert_eq!(class("resmgr:cpu quantum"), "scheduler");
        assert_eq!(class("resmgr:become active"), "scheduler");
    }

    #[test]
    fn a_shared_server_without_work_is_idle() {
        assert_eq!(class("shared server idle wait"), "idle");
        assert_eq!(class("virtual circuit wait"), "network");
        assert_eq!(class("virtual circuit status"), "idle");
        assert_eq!(class("dispatcher timer"), "idle");
    }

    #[test]
    fn every_beginning_stands_once_and_names_a_class_that_exists() {
        for (at, (beginning, class)) in BEGINNINGS.iter().enumerate() {
            assert!(CLASSES.contains(class), "{class}");
            assert!(BEGINNINGS[..at].iter().all(|(other, _)| other != beginning), "{beginning}");
        }
    }
}
