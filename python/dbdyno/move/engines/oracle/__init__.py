"""Oracle as a source, through python-oracledb: ROWID ranges, all as of one SCN. Not yet tested with a server."""
