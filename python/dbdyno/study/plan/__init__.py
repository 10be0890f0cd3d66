"""Plans: concrete studies, read from TOML, checked, and put in order."""
