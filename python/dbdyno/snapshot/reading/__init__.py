"""Reading a store: differences, intervals, periods, rates, series, sums and what changed."""
