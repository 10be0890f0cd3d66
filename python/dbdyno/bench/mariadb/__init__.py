"""A live MariaDB server as a bench, either embedded or named by a connection string."""
