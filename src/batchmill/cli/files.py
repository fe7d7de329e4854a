"""file URLs: read off the disk."""

from __future__ import annotations

import mimetypes
import os
import stat
from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

from batchmill.cli.answers import Body
from batchmill.errors import RetryLater, TargetError
from batchmill.runner import FetchContext, Result

_CHUNK: Final = 256 * 1024
_WRITE_IT: Final = "write it like file:///folder/name, a space as %20"


def read_file(url: str, body: Body, context: FetchContext) -> Result:
    """The content of a regular file on this machine; raises ``TargetError`` otherwise."""
    path = file_path(url)
    try:
        _read(path, body, context)
    except FileNotFoundError:
        raise TargetError("no such file", hint=f"check its spelling; {_WRITE_IT}") from None
    except PermissionError:
        raise TargetError("not allowed to read the file", hint="check its permissions") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        said = error.strerror if isinstance(error, OSError) else None
        raise TargetError(f"can't read the file: {said or 'bad name'}", hint=_WRITE_IT) from None
    kind, packed = mimetypes.guess_type(path.name)
    content_type = (kind or "") if packed is None else f"application/{packed}"
    return body.result(content_type, None, {}, guessed=True)


def file_path(url: str) -> Path:
    """The path that a file URL means; raises ``TargetError`` for another host's."""
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"}:
        raise TargetError("a file URL has three slashes", hint=_WRITE_IT)
    if not parts.path.startswith("/"):
        raise TargetError("a file URL needs the whole path", hint=_WRITE_IT)
    return Path(os.fsdecode(unquote_to_bytes(parts.path)))


def _read(path: Path, body: Body, context: FetchContext) -> None:
    """Read it in pieces; a pipe or a device is refused before it can block."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise TargetError("is a directory", hint="name a file in it")
    if not stat.S_ISREG(mode):
        raise TargetError("is not a regular file", hint="pipes and devices are not read")
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            body.add(chunk)
            if context.cancelled:
                raise RetryLater("stopped before it had finished")
