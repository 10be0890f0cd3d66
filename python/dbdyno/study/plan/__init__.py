"""Plans: concrete studies that are read from TOML, checked, and arranged in order."""
