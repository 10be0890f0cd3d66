//! Whatever a MariaDB server says, the load's client comes to an end without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| dyno_load::rehearse::rehearse_mariadb(data));
