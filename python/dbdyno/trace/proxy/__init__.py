"""PostgreSQL seen from its clients: proxy, join with a recording, replay.

`run_proxy` runs a proxy on the wire and stores what it saw as a trace, `join` combines it with a recording of the
server, `replay` runs a capture again. The work on the wire is implemented in `crates/dyno-proxy`.
"""
