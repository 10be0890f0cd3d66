"""Wide tables of Cassandra as tables of SQL: their map, questions over them, rows in and out."""
