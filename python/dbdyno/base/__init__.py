"""What every room may use: errors, connection strings, files, processes, signals, numbers and decisions."""
