"""Every job has a block of ports of its own, in which no other program listens."""

from __future__ import annotations

import socket

import pytest

from paddlejob import contract
from paddlejob.errors import NotPossible
from paddlejob.local.machine.ports import PortBlock, is_free


def test_two_jobs_never_share_a_block():
    one, two = PortBlock(), PortBlock()
    assert abs(one.first - two.first) >= contract.PORTS_PER_POD
    one.close()
    two.close()


def test_a_block_in_which_another_program_listens_is_skipped():
    before = PortBlock()
    before.close()
    with socket.create_server(("127.0.0.1", before.first + 3)):
        assert not is_free(before.first + 3)
        after = PortBlock()
        assert after.first > before.first
        after.close()


def test_when_no_block_of_ports_is_free_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    held = PortBlock()
    monkeypatch.setattr(contract, "PORT", held.first)
    monkeypatch.setattr(contract, "HOST_PORT_FIRST", held.first + contract.PORTS_PER_POD)
    with pytest.raises(NotPossible, match="no block of ports is free for the job; end some jobs"):
        PortBlock()
    held.close()
