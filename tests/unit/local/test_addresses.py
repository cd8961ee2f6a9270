"""Addresses are never shared, and one that was given back is not reused at once."""

from __future__ import annotations

from paddlejob.local.machine.addresses import Addresses


def test_two_engines_never_share_an_address():
    one, two = Addresses(), Addresses()
    taken = [engine.take() for engine in (one, two) for _ in range(300)]
    assert len(set(taken)) == 600
    assert all(address.startswith("127.") for address in taken)
    one.close()
    two.close()


def test_an_address_that_was_given_back_is_not_the_next_one():
    addresses = Addresses()
    first = addresses.take()
    addresses.give_back(first)
    assert addresses.take() != first
    addresses.close()
