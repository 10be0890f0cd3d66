"""An Oracle as a source, by python-oracledb: ROWID blocks, all as of one SCN. Written, and never run on an Oracle."""
