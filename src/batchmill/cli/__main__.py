"""``python -m batchmill.cli`` is the ``batchmill`` command."""

from batchmill.cli import main

main()
