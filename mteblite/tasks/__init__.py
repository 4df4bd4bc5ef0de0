"""Tasks as data: mteb's own loading, the user's files, downloads, and what mteb draws at random."""
