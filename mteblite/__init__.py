"""Lite MTEB benchmarks: score a text-embedding model on a few items, predict its full score."""
