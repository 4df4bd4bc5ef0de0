"""Tasks and models of the sample suite, read from installed packages."""
