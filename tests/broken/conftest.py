"""The table of broken stores is printed at the end."""

from tests.support.tables import tables

__all__ = ["tables"]
