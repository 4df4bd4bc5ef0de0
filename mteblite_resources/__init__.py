"""Access to files, the warehouse, encoders, tasks and results."""
