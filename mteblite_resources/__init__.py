"""Everything that touches the outside world: warehouse, vectors, encoders, tasks, results."""
