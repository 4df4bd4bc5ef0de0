"""What the pools of all task types share: items, texts, corpora, BM25, identities, costs."""
