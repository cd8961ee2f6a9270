"""The time by the API server's clock, from the dates of its responses."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlejob.kube.server_clock import CONFIRMED, ServerClock
from tests.support.examples import examples

HOUR = 3600


class Server:
    """Responses whose dates are as far ahead of the true time as a test says; time passes only between them."""

    def __init__(self) -> None:
        self._begun = time.time()
        self._steady = 1000.0
        self.clock = ServerClock(lambda: self._steady)

    @property
    def true(self) -> float:
        return self._begun + self._steady - 1000.0

    def respond(self, ahead: float = 0, after: float = 1) -> None:
        self._steady += after
        self.clock.compare(self._steady, formatdate(self.true + ahead, usegmt=True))

    @property
    def error(self) -> float:
        return self.clock.now() - self.true


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_the_first_response_is_believed_and_one_that_contradicts_the_others_is_not(ahead: int):
    server = Server()
    server.respond(60)
    assert abs(server.error - 60) < 1.5
    for _ in range(100):
        server.respond(ahead)
        assert abs(server.error - 60) < 1.5, "one of several servers has a wrong clock"
        server.respond(60)


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_a_clock_that_is_set_is_believed_when_every_response_says_so_for_a_while(ahead: int):
    server = Server()
    server.respond()
    server.respond(ahead)
    server.respond(ahead, after=CONFIRMED - 1)
    assert abs(server.error) < 1.5
    server.respond(ahead)
    assert abs(server.error - ahead) < 1.5


@examples(100)
@given(wrong=st.lists(st.tuples(st.integers(-2 * HOUR, 2 * HOUR), st.floats(0, CONFIRMED - 2)), max_size=20))
def test_whatever_single_responses_say_the_time_is_that_of_the_others(wrong: list[tuple[int, float]]):
    server = Server()
    server.respond()
    for ahead, after in wrong:
        server.respond(ahead, after)
        assert abs(server.error) < 8, "a difference of 5 s is not worth a doubt"
        server.respond()
