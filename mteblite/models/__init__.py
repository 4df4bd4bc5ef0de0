"""Models: names, identity, loading, prompts, backends, batches."""
