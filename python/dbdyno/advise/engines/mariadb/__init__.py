"""Evidence of a MariaDB server: `parts` are its kinds, `read` reads a live one, `window` checks comparability."""
