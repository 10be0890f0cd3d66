"""Taking of snapshots: once or periodically, of one target or of many."""
