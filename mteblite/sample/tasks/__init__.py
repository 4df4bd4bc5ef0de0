"""The nine tasks of the sample suite: text inside PyPI packages, as mteb tasks.

`registry` lists them without an import of mteb; `tasks` holds the mteb classes. SOURCES.md names
packages, licences and hashes.
"""
