"""Results kept over time in a place that git or rsync synchronises: a folder, or a branch of a git repository."""
