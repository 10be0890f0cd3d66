"""Evidence of a MariaDB server: `parts` are its kinds, `read` asks a live one, `window` says what can be compared."""
