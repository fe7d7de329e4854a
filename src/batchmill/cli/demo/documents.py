"""The documents that the demo's server serves: the package's own licence, readme and modules."""

from __future__ import annotations

from importlib import resources
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Final

import batchmill

_MODULES: Final = {
    "records.py": "records.py",
    "errors.py": "errors.py",
    "validation.py": "validation.py",
    "protocol.py": "runner/protocol.py",
    "config.py": "runner/config.py",
    "targets.py": "runner/targets.py",
    "models.py": "store/models.py",
    "engine.py": "store/engine.py",
}


def package_documents() -> dict[str, bytes]:
    """Name → content; the same names from a wheel, an editable install and a source folder."""
    found = {name: _module(path) for name, path in _MODULES.items()}
    return found | {"LICENSE": _licence(), "README.md": _readme()}


def _module(path: str) -> bytes:
    return resources.files("batchmill").joinpath(*path.split("/")).read_bytes()


def _licence() -> bytes:
    package = _installed()
    for name in ("licenses/LICENSE", "LICENSE"):
        text = package.read_text(name) if package else None
        if text:
            return text.encode()
    return _instead()


def _readme() -> bytes:
    package = _installed()
    text = str(package.metadata.get_payload() or "") if package else ""  # type: ignore[attr-defined]
    return text.encode() if text.strip() else _instead()


def _installed() -> Distribution | None:
    try:
        return distribution("batchmill")
    except PackageNotFoundError:
        return None


def _instead() -> bytes:
    """What there is in a source folder that was never installed."""
    return (batchmill.__doc__ or "batchmill").encode()
