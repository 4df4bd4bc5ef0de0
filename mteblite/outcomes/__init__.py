"""Common parts of the outcomes of all task types: similarities, metrics, cells."""
