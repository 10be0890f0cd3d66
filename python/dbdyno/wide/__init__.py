"""Wide tables of a Cassandra as tables of SQL: a map of them, questions over them, rows into them and out of them."""
