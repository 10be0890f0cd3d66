"""Reading of a store: differences, intervals, periods, rates, series, sums and changes."""
