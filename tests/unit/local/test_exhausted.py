"""When addresses, ports or GPUs run out: the error says what to do, and nothing stays taken."""

from __future__ import annotations

import os

import pytest

from paddlejob import contract
from paddlejob.errors import NotPossible
from paddlejob.local.machine import addresses
from paddlejob.local.machine.addresses import PER_BLOCK, Addresses
from paddlejob.local.machine.gpu_locks import GpuLock, is_free, lock_gpus, share_gpus
from paddlejob.local.machine.ports import PortBlock
from tests.support.fake_gpus import fake_gpus


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
    assert engine.take() == taken[7]
    assert engine.take().rpartition(".")[0] != taken[0].rpartition(".")[0]
    engine.close()


def test_when_no_block_of_ports_is_free_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    held = PortBlock()
    monkeypatch.setattr(contract, "PORT", held.first)
    monkeypatch.setattr(contract, "HOST_PORT_FIRST", held.first + contract.PORTS_PER_POD)
    with pytest.raises(NotPossible, match="no block of ports is free for the job; end some jobs"):
        PortBlock()
    held.close()


def free(locks: list[GpuLock]) -> None:
    for lock in locks:
        lock.release()


def test_gpus_are_locked_as_a_whole_or_not_at_all():
    gpus = fake_gpus(3)
    held = lock_gpus(gpus[1:2], 1)
    assert lock_gpus(gpus, 3) == []
    assert [is_free(gpu) for gpu in gpus] == [True, False, True], "nothing stays locked"
    both = lock_gpus(gpus, 2)
    assert [lock.gpu for lock in both] == [gpus[0], gpus[2]]
    assert not any(lock.shared for lock in both)
    free(held + both)
    assert all(map(is_free, gpus))
    assert lock_gpus(gpus, 0) == []


def test_a_job_that_shares_takes_free_gpus_first_and_no_more_than_it_needs():
    gpus = fake_gpus(3)
    held = lock_gpus(gpus[:1], 1)
    one = share_gpus(gpus, 1)
    assert [(lock.gpu, lock.shared) for lock in one] == [(gpus[1], False)]
    assert is_free(gpus[2])
    three = share_gpus(gpus, 3)
    assert {(lock.gpu, lock.shared) for lock in three} == {(gpus[0], True), (gpus[1], True), (gpus[2], False)}
    free(held)
    assert not is_free(gpus[0]), "it is still shared"
    assert lock_gpus(gpus[:1], 1) == []
    free(one + three)
    assert all(map(is_free, gpus))


def test_a_gpu_is_shared_by_eight_jobs_at_most_and_the_ninth_takes_none():
    gpus = fake_gpus(2)
    held = lock_gpus(gpus[:1], 1)
    sharing = [share_gpus(gpus[:1], 1) for _ in range(8)]
    assert all(len(locks) == 1 and locks[0].shared for locks in sharing)
    assert share_gpus(gpus[:1], 1) == []
    assert share_gpus(gpus, 2) == []
    assert is_free(gpus[1]), "nothing stays locked"
    for locks in (held, *sharing):
        free(locks)


def test_the_gpu_that_the_fewest_jobs_share_is_shared_next():
    gpus = fake_gpus(2)
    held = lock_gpus(gpus, 2)
    first = share_gpus(gpus[:1], 1)
    second = share_gpus(gpus, 1)
    assert second[0].gpu == gpus[1]
    assert share_gpus(gpus, 3) == [], "there are only two"
    for locks in (held, first, second):
        free(locks)
