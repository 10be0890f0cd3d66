"""Plans: a study made concrete, read from TOML, checked and ordered."""
