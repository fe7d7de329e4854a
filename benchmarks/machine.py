"""The machine that measured, as far as it explains the figures."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sqlite3
from datetime import UTC, datetime
from pathlib import Path


def describe(folder: Path) -> dict[str, str]:
    """What the figures were measured on; ``folder`` is where SQLite's files lie."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": _memory(),
        "disk": f"{_file_system(folder.resolve())} for the databases",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "SQLAlchemy": importlib.metadata.version("sqlalchemy"),
    }


def _processor() -> str:
    found = _fields(Path("/proc/cpuinfo")).get("model name", "")
    return found or platform.processor() or platform.machine()


def _memory() -> str:
    kib = _fields(Path("/proc/meminfo")).get("MemTotal", "").split()
    return f"{int(kib[0]) / 1024**2:.0f} GiB" if kib else "unknown"


def _fields(path: Path) -> dict[str, str]:
    """The first value of each ``name : value`` line; nothing where the system has no such file."""
    found: dict[str, str] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            found.setdefault(name.strip(), value.strip())
    return found


def _file_system(folder: Path) -> str:
    """The kind of file system: on one in memory a commit costs nothing."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    kinds = {
        point: kind
        for _, point, kind, *_ in map(str.split, mounts.read_text(encoding="utf-8").splitlines())
    }
    for point in (folder, *folder.parents):
        if str(point) in kinds:
            return kinds[str(point)]
    return "unknown"
