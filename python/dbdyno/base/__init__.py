"""Code that every package uses: errors, connection strings, files, processes, signals, numbers and decisions."""
