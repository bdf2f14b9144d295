"""The statement of lesson 00: the verdict follows the times."""

from __future__ import annotations

import pytest

from llmcourse.claims import FAILS, HOLDS
from llmcourse.claims.one_prompt import judge


@pytest.mark.parametrize("first, second, verdict", [(1.0, 0.1, HOLDS), (1.0, 0.5, HOLDS), (1.0, 0.51, FAILS)])
def test_the_first_must_wait_twice_as_long(first, second, verdict):
    assert judge(first, second).verdict == verdict


def test_an_engine_that_sleeps_a_second_at_every_step_fails():
    """Planted: the work on a prompt costs it nothing more."""
    assert judge(1.0, 1.0).verdict == FAILS
