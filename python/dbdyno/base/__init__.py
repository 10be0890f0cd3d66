"""Code that every package may use: errors, connection strings, files, processes, signals, numbers and decisions."""
