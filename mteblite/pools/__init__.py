"""Common parts of the pools of all task types: items, texts, corpora, BM25, identities, costs."""
