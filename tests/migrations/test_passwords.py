"""Passwords with characters that mean something in a URL, an ini file or SQL (cases.md S10)."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import URL, make_url

from batchmill.errors import StoreUnavailable
from batchmill.store import create_store_engine, migrate
from tests.migrations.places import MakePlace, Place
from tests.migrations.test_alembic import run_alembic

PASSWORD = "p%40:s@s"
"""As it is; in a URL its characters are escaped once more."""


@pytest.fixture
def guarded(request: pytest.FixtureRequest, make_place: MakePlace) -> Place:
    """A database whose user needs the password."""
    place = make_place(request.param)
    if request.param == "postgresql":
        guard(place)
        place.url = place.url.replace("//postgres:@", "//guarded:p%2540%3As%40s@")
    assert place.address.password == PASSWORD
    return place


def guard(place: Place) -> None:
    """Make a user whom the server asks for the password; the others it lets in."""
    literal = PASSWORD.replace("%", "%%")
    place.run("DROP ROLE IF EXISTS guarded")
    with place.inside() as connection:
        connection.exec_driver_sql(f"CREATE ROLE guarded LOGIN PASSWORD '{literal}'", {})
        connection.exec_driver_sql("GRANT CREATE ON SCHEMA public TO guarded")
    (name,) = place.run("SHOW hba_file")[0]
    rules = Path(name).read_text()
    if "guarded" not in rules:
        Path(name).write_text(f"local all guarded scram-sha-256\n{rules}")
    place.run("SELECT pg_reload_conf()")


def with_password(place: Place, password: str) -> URL:
    return make_url(place.url).set(password=password)


both = pytest.mark.parametrize("guarded", ["postgresql", "mariadb"], indirect=True)


@both
def test_upgrade(guarded: Place) -> None:
    """A password with %, @ and : is taken as it is."""
    migrate.upgrade(guarded.engine())
    migrate.verify(guarded.engine())


@pytest.mark.checkout
@both
def test_command(guarded: Place, tmp_path: Path) -> None:
    """Alembic's own command takes it from the environment, which nothing interpolates."""
    done = run_alembic("upgrade", "head", url=guarded.url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    migrate.verify(guarded.engine())


@both
def test_a_wrong_one_is_not_shown(guarded: Place) -> None:
    """With a wrong password the error holds neither it nor the URL; the server really asks."""
    engine = create_store_engine(with_password(guarded, "se%cret"))
    with pytest.raises(StoreUnavailable) as caught:
        migrate.upgrade(engine)
    shown = f"{caught.value!r}"
    assert "cret" not in shown
    assert str(guarded.address.database) not in shown
