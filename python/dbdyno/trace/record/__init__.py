"""Exact waits of a live PostgreSQL, recorded as a trace: `place` finds the server, `recording` records it.

The work is done in `crates/dyno-record`.
"""
