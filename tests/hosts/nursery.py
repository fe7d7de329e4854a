"""A process that has loaded everything, and forks runners of ``tests.hosts.child`` in no time.

Each line of its input is the JSON for one; it answers with its process id. What a runner logs goes
to the file ``log``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from tests.hosts.child import run


def runner(given: dict[str, Any]) -> None:
    """Become the runner; its input never ends, it has nothing to say."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reading, _ = os.pipe()
    os.dup2(reading, 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(given["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    sys.stdin = os.fdopen(0)
    run(given)


def main() -> None:
    """Fork for each line; nobody waits for those that end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    while line := sys.stdin.readline():
        process = os.fork()
        if process == 0:
            try:
                runner(json.loads(line))
            finally:
                os._exit(0)
        print(process, flush=True)


if __name__ == "__main__":
    main()
