"""External clients: programs that run a plan's load in place of dbdyno's own, by docs/reference/client-protocol.md."""
