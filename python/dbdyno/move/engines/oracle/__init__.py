"""Oracle as a source, through python-oracledb: ROWID ranges, all as of one SCN. Never run against an Oracle server."""
