"""Full scores of reference models: official result formats, families, pruning, suspicion."""
