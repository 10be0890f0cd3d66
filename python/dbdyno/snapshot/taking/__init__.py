"""Taking of snapshots: a single one or one per period, of one target or of many."""
