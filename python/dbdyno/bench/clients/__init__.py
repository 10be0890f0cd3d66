"""External clients: programs that run a plan's load instead of dbdyno, by docs/reference/client-protocol.md."""
