"""Network namespaces that stand for hosts: each with an address, on a bridge of their own."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def ip(*words: str) -> None:
    """Run iproute2's ``ip``."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


class Host:
    """A host of the network; ``inside`` are the words that run a command on it."""

    def __init__(self, network: str, subnet: str, number: int) -> None:
        self.address = f"{subnet}.{number + 1}"
        self._network = network
        self._name, self._link = f"{network}-{number}", f"{network}v{number}"
        self.inside = ["ip", "netns", "exec", self._name]

    def make(self) -> None:
        """Set it up, linked to the network."""
        ip("netns", "add", self._name)
        peer = f"{self._link}p"
        ip("link", "add", self._link, "type", "veth", "peer", "name", peer)
        ip("link", "set", peer, "netns", self._name, "name", "eth0")
        ip("link", "set", self._link, "master", self._network, "up")
        for device in ("lo", "eth0"):
            ip("-n", self._name, "link", "set", device, "up")
        ip("-n", self._name, "addr", "add", f"{self.address}/24", "dev", "eth0")

    def plug(self, *, in_: bool) -> None:
        """Pull its cable, or plug it in again; nobody is told."""
        ip("link", "set", self._link, "up" if in_ else "down")

    def isolate(self, *, alone: bool) -> None:
        """Cut the network somewhere else, or mend it: the host's own link looks fine."""
        ip("link", "set", self._link, *(["nomaster"] if alone else ["master", self._network]))

    def remove(self) -> None:
        """Take it away, as far as it was made; the link goes with its namespace."""
        subprocess.run(["ip", "netns", "del", self._name], capture_output=True)


@contextmanager
def network(count: int) -> Iterator[list[Host]]:
    """So many hosts; skips the test where there is no right to make them, or no ``ip``."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root, and iproute2: apt-get install iproute2")
    name = f"bm{secrets.token_hex(3)}"
    made = subprocess.run(
        ["ip", "link", "add", name, "type", "bridge"], capture_output=True, text=True
    )
    if made.returncode != 0:
        pytest.skip(f"network namespaces can't be made here: {made.stderr.strip()}")
    subnet = f"10.{random.randrange(100, 250)}.{random.randrange(250)}"  # others test here too
    hosts = [Host(name, subnet, number) for number in range(count)]
    try:
        ip("link", "set", name, "up")
        ip("addr", "add", f"{subnet}.254/24", "dev", name)
        for host in hosts:
            host.make()
        yield hosts
    finally:
        for host in hosts:
            host.remove()
        ip("link", "del", name)
