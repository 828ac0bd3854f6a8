"""Measurements: each module has `run(console)`, prints a table, and is repeatable with `make measure`."""
