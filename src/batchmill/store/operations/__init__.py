"""What a repository does on a connection, inside its transaction: functions of a ``Tx``.

Nothing here opens, commits or rolls back; values that come in have been checked.
"""
