"""Exact waits of a live PostgreSQL, recorded as a trace: `place` finds the server, `recording` records it, `allowed` says
what this user and this kernel allow. The work is done in `crates/dyno-record`."""
