"""Used by every package: errors, connection strings, files, processes, signals, numbers and decisions."""
