"""The block pool: nothing is lost, nothing is given out twice, and a prefix is found only where its very text stands.

Oracle of the random walks: a plain list of each request's tokens, and for each block the text that was written into it.
"""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from llmcourse.cache.blocks import NULL, BlockPool
from llmcourse.errors import CacheFault


def test_block_zero_is_never_given_out():
    pool = BlockPool(5, size=2)
    assert sorted(pool.allocate(4)) == [1, 2, 3, 4]
    assert pool.allocate(1) is None and NULL not in pool.match([1, 2, 3])


def test_a_request_that_does_not_fit_changes_nothing():
    pool = BlockPool(4, size=2)
    assert pool.allocate(4) is None
    assert pool.n_free == 3 and pool.n_held == 0


def test_a_text_is_found_after_its_holder_has_left():
    pool = BlockPool(6, size=2)
    blocks = pool.allocate(2)
    pool.commit(blocks, [7, 8, 9, 10])
    pool.release(blocks)
    assert pool.match([7, 8, 9, 10, 11]) == blocks
    assert pool.match([7, 8, 9, 9, 11]) == blocks[:1]


def test_the_last_token_is_always_left_to_compute():
    pool = BlockPool(6, size=2)
    blocks = pool.allocate(2)
    pool.commit(blocks, [7, 8, 9, 10])
    assert pool.match([7, 8, 9, 10]) == blocks[:1]
    assert pool.match([7, 8]) == []


def test_the_same_block_after_another_beginning_is_another_text():
    pool = BlockPool(8, size=2)
    one, two = pool.allocate(2), pool.allocate(2)
    pool.commit(one, [1, 1, 5, 5])
    pool.commit(two, [2, 2, 5, 5])
    assert pool.match([2, 2, 5, 5, 0]) == two
    assert pool.match([5, 5, 0]) == []


def test_what_was_kept_longest_loses_its_text_first():
    pool = BlockPool(5, size=1)
    for token in (1, 2, 3, 4):
        block = pool.allocate(1)
        pool.commit(block, [token])
        pool.release(block)
    first = pool.match([1, 0])
    pool.take(first)
    pool.release(first)  # used again, so 2 is now the oldest
    pool.allocate(1)
    assert [bool(pool.match([token, 0])) for token in (1, 2, 3, 4)] == [True, False, True, True]


def test_the_end_of_a_text_is_forgotten_before_its_beginning():
    pool = BlockPool(4, size=1)
    blocks = pool.allocate(3)
    pool.commit(blocks, [1, 2, 3])
    pool.release(blocks)
    pool.allocate(1)
    assert pool.match([1, 2, 3, 4]) == blocks[:2]


def test_who_writes_into_a_shared_block_gets_one_of_their_own():
    pool = BlockPool(4, size=2)
    mine = pool.allocate(1)
    pool.commit(mine, [1, 2])
    pool.take(mine)
    copy = pool.writable(mine[0])
    assert copy != mine[0] and pool.match([1, 2, 3]) == mine
    pool.release([copy]), pool.release(mine)
    pool.check()
    assert pool.n_held == 0


def test_a_text_that_will_change_is_forgotten_with_all_that_continues_it():
    pool = BlockPool(6, size=1)
    blocks = pool.allocate(3)
    pool.commit(blocks, [1, 2, 3])
    assert pool.writable(blocks[1]) == blocks[1]
    assert pool.match([1, 2, 3, 4]) == blocks[:1]
    pool.check()


def test_two_who_computed_the_same_text_share_what_can_be_found():
    pool = BlockPool(8, size=1)
    one, two = pool.allocate(1), pool.allocate(2)
    pool.commit(one, [1])
    pool.commit(two, [1, 2])
    assert pool.match([1, 2, 3]) == [one[0], two[1]]
    pool.release(one)
    pool.allocate(5)  # takes all room: the first block's text goes, and with it what could only be found behind it
    assert pool.match([1, 2, 3]) == []
    pool.check()


@pytest.mark.parametrize("blocks", [[1, 1], [2], [NULL]])
def test_giving_back_what_one_does_not_hold_is_a_fault_and_changes_nothing(blocks):
    pool = BlockPool(4)
    assert pool.allocate(1) == [1]
    with pytest.raises(CacheFault, match="more often"):
        pool.release(blocks)
    assert pool.n_held == 1
    pool.check()


def test_a_broken_pool_is_noticed():
    pool = BlockPool(4)
    pool.allocate(1)
    pool._empty.append(1)
    with pytest.raises(CacheFault, match="two states"):
        pool.check()


class Walk(RuleBasedStateMachine):
    """Requests come, grow, share, take back, and leave, in any order, in a pool that is too small for them."""

    def __init__(self):
        super().__init__()
        self.pool = BlockPool(9, size=2, hash_bits=1)  # with one bit, half of all look-ups collide
        self.requests: list[tuple[list[int], list[int]]] = []  # tokens, blocks
        self.written: dict[int, tuple[int, ...]] = {}  # block → all tokens from the first to its end

    @rule(ids=st.lists(st.integers(0, 1), min_size=1, max_size=9))
    def comes(self, ids):
        pool = self.pool
        found = pool.match(ids)
        for i, block in enumerate(found):
            assert self.written[block] == tuple(ids[: 2 * (i + 1)])
        assert 2 * len(found) < len(ids)
        pool.take(found)
        more = pool.allocate(pool.blocks_for(len(ids)) - len(found))
        if more is None:
            pool.release(found)
            return
        self.requests.append((list(ids), found + more))
        self.write(-1, 2 * len(found))

    @precondition(lambda self: self.requests)
    @rule(which=st.integers(0, 99), token=st.integers(0, 1))
    def grows(self, which, token):
        ids, blocks = self.requests[which % len(self.requests)]
        if len(ids) == 2 * len(blocks):
            more = self.pool.allocate(1)
            if more is None:
                return
            blocks += more
        ids.append(token)
        self.write(which % len(self.requests), len(ids) - 1)

    @precondition(lambda self: self.requests)
    @rule(which=st.integers(0, 99), n=st.integers(1, 9))
    def takes_tokens_back(self, which, n):
        ids, blocks = self.requests[which % len(self.requests)]
        n = min(n, len(ids))
        keep = self.pool.blocks_for(n)
        if n % 2:
            own = self.pool.writable(blocks[keep - 1])
            if own is None:
                return
            blocks[keep - 1] = own
            self.written[own] = tuple(ids[:n])
        self.pool.release(blocks[keep:])
        del ids[n:], blocks[keep:]

    @precondition(lambda self: self.requests)
    @rule(which=st.integers(0, 99))
    def leaves(self, which):
        _, blocks = self.requests.pop(which % len(self.requests))
        self.pool.release(blocks)

    @rule()
    def all_texts_are_forgotten(self):
        self.pool.clear()
        assert self.pool.n_indexed == 0

    def write(self, which, start):
        """Tokens from `start` on are computed: written into their blocks, which nobody else may hold, and committed."""
        ids, blocks = self.requests[which]
        for i in range(start // 2, len(blocks)):
            assert sum(other.count(blocks[i]) for _, other in self.requests) == 1
            self.written[blocks[i]] = tuple(ids[: 2 * (i + 1)])
        self.pool.commit(blocks, ids)

    @invariant()
    def nothing_is_lost_or_mixed_up(self):
        self.pool.check()
        held = {block for _, blocks in self.requests for block in blocks}
        assert self.pool.n_held == len(held) and self.pool.n_free + len(held) == 8
        for ids, blocks in self.requests:
            assert len(blocks) == self.pool.blocks_for(len(ids))
            for i in range(len(ids) // 2):
                assert self.written[blocks[i]][: 2 * (i + 1)] == tuple(ids[: 2 * (i + 1)])


Walk.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
test_random_walks_lose_and_mix_up_nothing = Walk.TestCase
