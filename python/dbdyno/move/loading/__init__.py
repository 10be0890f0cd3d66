"""Loading of files, or of rows from another server, into a table."""
