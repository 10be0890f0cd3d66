"""The command line: one file per command, in a folder for each noun."""
