"""``--fetch module:function``: from a name to the function."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from batchmill.cli.errors import UsageError


def load_function(option: str, name: str) -> Callable[..., Any]:
    """The function that ``module:function`` names; the current folder is looked in first.

    Raises ``UsageError``, one line that begins with the option, whatever the import does.
    """
    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise UsageError(f"{option}: write it like module:function, not {name!r}")
    try:
        function = attrgetter(path)(_module(option, module_name))
    except AttributeError:
        raise UsageError(f"{option}: module {module_name} has no {path}") from None
    return _checked(option, name, function)


def _module(option: str, name: str) -> Any:
    _look_in_current_folder()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(f"{option}: there is no module {error.name}") from None
        raise UsageError(
            f"{option}: module {name} needs a module {error.name}, which isn't there"
        ) from None
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"{option}: importing {name} failed ({type(error).__name__}: {error})"
        ) from error


def _look_in_current_folder() -> None:
    """Put the current folder on the import path for good: the function may import later."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()


def _checked(option: str, name: str, function: Any) -> Callable[..., Any]:
    if not callable(function) or inspect.isclass(function):
        raise UsageError(f"{option}: {name} is not a function")
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"{option}: {name} is async; the command takes a plain function")
    return function  # type: ignore[no-any-return]
