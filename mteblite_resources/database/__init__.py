"""The DuckDB files of the warehouse: opened, locked, brought up to date, published, verified."""
