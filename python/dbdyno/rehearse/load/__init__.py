"""Sources of a load: captures of the proxy or from server logs, and a server's statement statistics."""
