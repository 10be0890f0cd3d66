"""Sources of a load: captures of the proxy or of server logs, and the statements that a server has counted."""
