"""The model: a database instance and its storage in virtual time, as a target of studies."""
