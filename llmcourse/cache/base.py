"""What every cache can be asked, with the answers of one that has nothing special."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from llmcourse.errors import CannotTruncate


class KVCache:
    """The interface of a cache (docs/parts.md), as far as one answer suits most: a cache of your own begins here.

    Still to be written: `open`, `update`, `close`, `bytes_for`; and `reserve` where memory is taken as tokens come.

    kind: which cache it is, as a table's `takes` names it. spec: the text that it was asked for by.
    keeps_past: whether anything is kept between steps. step_tokens: how many tokens a step should bring at the most.
    can_truncate: whether tokens can be taken back. block_size: tokens in a block, where there is a pool of them.
    """

    kind, spec = "unnamed", ""
    keeps_past, step_tokens, can_truncate, block_size = True, None, False, None

    def reserve(self, slot: int, length: int) -> bool:
        """Make room for a request's first `length` tokens; False where there is none. After True `update` finds it."""
        return True

    def check_capacity(self, n_tokens: int) -> None:
        """Raise OutOfMemory where a request of n tokens does not fit even when it is alone. A cache that grows cannot say."""

    def commit(self, slot: int, ids: Sequence[int]) -> None:
        """The request's next tokens are computed and final. A cache with an index of prefixes remembers them."""

    def truncate(self, slot: int, n: int) -> None:
        """Keep the request's first n tokens and forget those after them. Raises CannotTruncate."""
        raise CannotTruncate(
            f"a cache of kind {self.kind!r} cannot take tokens back: close slot {slot} and compute the first {n} again"
        )

    def block_tables(self, chunks: Sequence) -> list[Sequence[int]] | None:
        """For each chunk of a step the blocks of its request, in order; None where there is no pool."""
        return None


def window_of(config, layer: int) -> int | None:
    """How many tokens, itself included, a token sees in this layer of the model; None for all of them."""
    return config.windows[layer] if config.windows else None


def within(entry: tuple[Tensor, ...], n: int, window: int | None) -> tuple[Tensor, ...]:
    """An entry (K, V) under a layer's own window: a token at position p sees the keys j > p − window.

    entry: all keys up to the last of n rows, in the order of their positions.
    One row sees the newest `window` keys, which is a view. Of several rows each has another window: then with `visible`.
    """
    K, V = entry
    if window is None or len(K) <= window:
        return entry
    first = max(0, len(K) - n + 1 - window)  # the first key that the first row sees
    K, V = K[first:], V[first:]
    if n == 1:
        return K, V
    row = K.new_ones(n, len(K)).bool()  # row i stands at column len(K) − n + i
    return K, V, row.tril(len(K) - n).triu(len(K) - n + 1 - window)
