"""PostgreSQL from its clients' side: `proxying` runs a proxy on the wire and keeps what it saw as a trace, `join`
puts it beside a recording of the server, `replay` runs what was captured again.

The work on the wire is done in `crates/dyno-proxy`.
"""
