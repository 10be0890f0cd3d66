"""Recording of exact waits of a live PostgreSQL as a trace: `process` finds the server, `recording` records it.

The recording itself is implemented in `crates/dyno-record`.
"""
