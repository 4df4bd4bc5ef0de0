"""What the outcomes of all task types share: similarities, metrics, cells."""
