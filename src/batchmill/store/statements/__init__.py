"""Every SQL statement, each a small pure function from capabilities to a construct.

A function takes the database's :class:`~batchmill.store.capabilities.Capabilities` first, then
whatever picks a variant of the statement; values go in as named parameters. ``operations`` runs
them, a sync and an async connection alike.
"""
