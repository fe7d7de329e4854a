"""What a process of this machine uses, read from /proc."""

from __future__ import annotations

from pathlib import Path


def open_files(pid: int) -> int:
    """How many files, sockets and pipes it has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def memory(pid: int) -> int:
    """Bytes of memory that it has in use (its resident set)."""
    return _status(pid, "VmRSS") * 1024


def threads(pid: int) -> int:
    """How many threads it has."""
    return _status(pid, "Threads")


def _status(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise AssertionError(f"{name} isn't in /proc/{pid}/status")
