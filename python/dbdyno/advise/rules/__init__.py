"""Rules of advice: a file per rule or family, found by listing the folder."""
