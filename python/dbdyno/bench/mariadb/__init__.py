"""A live MariaDB as a bench: embedded, or by its connection string."""
