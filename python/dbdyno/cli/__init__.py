"""The command line: one file per command, in folders by noun."""
