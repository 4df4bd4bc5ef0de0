"""Tasks as data: mteb's loading, the user's own files, downloads and mteb's random draws."""
