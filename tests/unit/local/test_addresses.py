"""Addresses are never shared, and one that was given back is not reused at once."""

from __future__ import annotations

import os

import pytest

from paddlejob.errors import NotPossible
from paddlejob.local.machine import addresses
from paddlejob.local.machine.addresses import PER_BLOCK, Addresses


def test_two_engines_never_share_an_address():
    one, two = Addresses(), Addresses()
    taken = [engine.take() for engine in (one, two) for _ in range(300)]
    assert len(set(taken)) == 600
    assert all(address.startswith("127.") for address in taken)
    one.close()
    two.close()


@pytest.fixture
def two_blocks(monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Only two blocks, outside those of other engines on this machine."""
    first = (128 << 8) + 2 * (os.getpid() % 8000)
    monkeypatch.setattr(addresses, "FIRST_BLOCK", first)
    monkeypatch.setattr(addresses, "LAST_BLOCK", first + 2)
    return f"127.{first >> 8}.{first & 255}.", f"127.{first >> 8}.{(first & 255) + 1}."


def test_when_every_block_of_addresses_is_leased_the_error_says_what_to_do(two_blocks: tuple[str, str]):
    engines = [Addresses(), Addresses(), Addresses()]
    taken = {engine.take() for engine in engines[:2]}
    assert {address[: address.rindex(".") + 1] for address in taken} == set(two_blocks)
    with pytest.raises(NotPossible, match="no loopback addresses are left; end some jobs"):
        engines[2].take()
    engines[0].close()
    assert engines[2].take().startswith(two_blocks)
    for engine in engines:
        engine.close()


def test_an_engine_uses_a_block_to_its_end_before_it_leases_another(two_blocks: tuple[str, str]):
    engine = Addresses()
    taken = [engine.take() for _ in range(PER_BLOCK)]
    assert len({address.rpartition(".")[0] for address in taken}) == 1
    assert sorted(int(address.rpartition(".")[2]) for address in taken) == list(range(1, 255)), "neither 0 nor 255"
    engine.give_back(taken[7])
    assert engine.take() == taken[7], "after a whole round"
    assert engine.take().rpartition(".")[0] != taken[0].rpartition(".")[0]
    engine.close()


def test_an_address_that_was_given_back_is_not_the_next_one():
    addresses = Addresses()
    first = addresses.take()
    addresses.give_back(first)
    assert addresses.take() != first
    addresses.close()
