"""External clients: programs that run a plan's load instead of dbdyno; see docs/reference/client-protocol.md."""
