"""The way in: files or rows of another server into a table."""
