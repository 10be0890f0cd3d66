//! Header of a trace: the version and the host that wrote it. Every version has its own lines; all of them are
//! optional, and a trace without a header is normal.

/// Facts of a header as text; empty if the header does not contain them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Name of the trace file on its own host.
    pub trace_file: String,
    /// Version of the database, such as `19.12.0.0.0`.
    pub version: String,
    /// Edition, such as `Oracle Database 19c Enterprise Edition`.
    pub edition: String,
    /// Build label.
    pub build: String,
    /// Folder of the Oracle software.
    pub oracle_home: String,
    /// Operating system.
    pub platform: String,
    /// Release of the operating system.
    pub release: String,
    /// Processor type.
    pub machine: String,
    /// Host.
    pub host: String,
    /// Instance.
    pub instance: String,
    /// Instance number in the cluster.
    pub instance_number: String,
    /// Database.
    pub database: String,
    /// Unique name of the database.
    pub database_unique: String,
    /// Identifier of the database (DBID).
    pub database_id: String,
    /// Role of the database, such as `PRIMARY`.
    pub role: String,
    /// Oracle's number of the process.
    pub process: String,
    /// Process id (Unix) or thread id (Windows).
    pub pid: String,
    /// Program, such as `oracle@host`.
    pub image: String,
}

impl Facts {
    /// Returns the facts in the lines of a header.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut facts = Facts::default();
        for line in lines {
            facts.add(line);
        }
        facts
    }

    /// Returns true if nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Facts::default()
    }

    /// Returns the first number of the version, 8 to 23, or `None` if it is unknown.
    pub fn major(&self) -> Option<u32> {
        self.version.split('.').next()?.parse().ok()
    }

    /// Adds a line of the header; known facts are kept.
    pub fn add(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        for start in ["Trace file ", "Dump file "] {
            if let Some(name) = line.strip_prefix(start) {
                keep(&mut self.trace_file, name);
                return;
            }
        }
        if let Some(version) = line.strip_prefix("Version ").filter(|rest| is_version(rest)) {
            // More exact than the release on the edition's line.
            version.clone_into(&mut self.version);
            return;
        }
        if self.edition_line(line) || self.process_line(line) {
            return;
        }
        if let Some((key, value)) = line.split_once([':', '=']) {
            self.named(key.trim(), value.trim());
        } else if line.starts_with('/') && !line.contains(' ') {
            keep(&mut self.trace_file, line);
        } else if let Some(version) = line.strip_prefix("Windows NT Version ") {
            keep(&mut self.platform, "Windows");
            keep(&mut self.release, version);
        }
    }

    /// Parses `Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production`; returns true on success.
    fn edition_line(&mut self, line: &str) -> bool {
        let Some((edition, rest)) = line.split_once(" Release ") else { return false };
        let version = rest.split([' ', '-']).next().unwrap_or_default();
        let known = edition.starts_with("Oracle") || edition.starts_with("Personal Oracle");
        if !known || !is_version(version) {
            return false;
        }
        keep(&mut self.edition, edition);
        keep(&mut self.version, version);
        true
    }

    /// Parses the process, on one line (`Unix process pid: 1, NID: 2, image: x`) or, since 23ai, on four; returns true
    /// on success.
    fn process_line(&mut self, line: &str) -> bool {
        for start in ["Unix process pid:", "Windows thread id:"] {
            let Some(rest) = line.strip_prefix(start) else { continue };
            let mut parts = rest.split(", ");
            keep(&mut self.pid, parts.next().unwrap_or_default());
            for part in parts {
                self.process_line(part);
            }
            return true;
        }
        if let Some(image) = line.strip_prefix("image:") {
            keep(&mut self.image, image);
            return true;
        }
        false
    }

    fn named(&mut self, key: &str, value: &str) {
        let fact = match key {
            "Build label" => &mut self.build,
            "ORACLE_HOME" => &mut self.oracle_home,
            "System name" => &mut self.platform,
            "Node name" => &mut self.host,
            "Release" => &mut self.release,
            "Machine" => &mut self.machine,
            "Instance name" => &mut self.instance,
            "Instance number" => &mut self.instance_number,
            "Database name" => &mut self.database,
            "Database unique name" => &mut self.database_unique,
            "Database id" => &mut self.database_id,
            "Database role" => &mut self.role,
            "Oracle process number" => &mut self.process,
            _ => return,
        };
        keep(fact, value);
    }
}

fn keep(fact: &mut String, value: &str) {
    if fact.is_empty() {
        value.trim().clone_into(fact);
    }
}

fn is_version(text: &str) -> bool {
    let numbers = text.split('.').count();
    numbers >= 2 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> Facts {
        Facts::of(text.split('\n').map(str::as_bytes))
    }

    #[test]
    fn a_header_of_19c() {
        let facts = facts(
            "Trace file /u01/diag/x_ora_7.trc\n\
             Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production\n\
             Version 19.14.2.0.0\n\
             Build label:    RDBMS_19.14\n\
             ORACLE_HOME:    /u01/app/19\n\
             System name:\tLinux\nNode name:\tdb1\nRelease:\t5.4\n\
             Version:\t#2 SMP Sat Jul 16\nMachine:\tx86_64\n\
             Instance name: yyy\nInstance number: 4\nDatabase name: D\n\
             Oracle process number: 871\n\
             Unix process pid: 613102, NID: 4026531836, image: oracle@db1",
        );
        assert_eq!(facts.version, "19.14.2.0.0");
        assert_eq!(facts.edition, "Oracle Database 19c Enterprise Edition");
        assert_eq!((facts.host.as_str(), facts.platform.as_str()), ("db1", "Linux"));
        assert_eq!((facts.pid.as_str(), facts.image.as_str()), ("613102", "oracle@db1"));
        assert_eq!((facts.instance_number.as_str(), facts.major()), ("4", Some(19)));
        assert_eq!(facts.trace_file, "/u01/diag/x_ora_7.trc");
    }

    #[test]
    fn a_header_of_9i() {
        let facts = facts(
            "/u01/admin/udump/x_ora_7.trc\n\
             Oracle9i Enterprise Edition Release 9.2.0.1.0 - Production\n\
             With the Partitioning, OLAP and Oracle Data Mining options\n\
             ORACLE_HOME = /u01/9.2.0\nUnix process pid: 7, image: oracle@h (TNS V1-V3)",
        );
        assert_eq!((facts.version.as_str(), facts.major()), ("9.2.0.1.0", Some(9)));
        assert_eq!(facts.trace_file, "/u01/admin/udump/x_ora_7.trc");
        assert_eq!(facts.oracle_home, "/u01/9.2.0");
    }

    #[test]
    fn a_header_of_26ai_tells_the_process_on_four_lines() {
        let facts = facts(
            "Oracle AI Database 26ai Free Release 23.26.0.0.0 - Develop, Learn, and Run for Free\n\
             Unix process pid:       1949\n             NID:       4026\n\
             created:   2026-01-01\n             image:     oracle@h",
        );
        assert_eq!((facts.version.as_str(), facts.pid.as_str()), ("23.26.0.0.0", "1949"));
        assert_eq!(facts.image, "oracle@h");
    }

    #[test]
    fn a_header_of_windows() {
        let facts = facts(
            "Windows NT Version V6.2\nCPU : 8 - type 8664\n\
             Windows thread id: 5864, image: ORACLE.EXE (SHAD)",
        );
        assert_eq!((facts.platform.as_str(), facts.release.as_str()), ("Windows", "V6.2"));
        assert_eq!((facts.pid.as_str(), facts.image.as_str()), ("5864", "ORACLE.EXE (SHAD)"));
    }

    #[test]
    fn no_header_is_no_fact() {
        assert!(facts("[oracle@rac1 ~]$ grep x y\n").is_empty());
    }
}
