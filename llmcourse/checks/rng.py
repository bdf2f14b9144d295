"""Drawn inputs of a probe: the same for the submission and for the reference, new with each seed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MIXED = _LETTERS + "  \n.,'!?0123456789" + "éñüßøЖдяλω" + "日本語한글हिन" + "🙂👩🏽‍🚀✓"


class Rng:
    """A source of random inputs, fixed by (seed, lesson and probe).

    Methods without "tensor" in their return type need no torch; tensors come from a generator of their own, so a
    submission that reseeds torch, numpy or random changes nothing.
    """

    def __init__(self, seed: int, label: str):
        digest = hashlib.sha256(f"{seed}/{label}".encode()).digest()
        self._number = int.from_bytes(digest[:7], "big")
        self._random = random.Random(self._number)
        self._torch_generator = None

    def normal(self, *shape: int, dtype=None):
        """Tensor [*shape] of standard normal numbers, float32 unless `dtype` (a torch dtype) says otherwise."""
        import torch

        return torch.randn(shape, generator=self._generator(), dtype=torch.float32).to(dtype or torch.float32)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0, dtype=None):
        """Tensor [*shape] of numbers in [low, high); without a shape one Python float."""
        if not shape:
            return self._random.uniform(low, high)
        import torch

        drawn = torch.rand(shape, generator=self._generator(), dtype=torch.float32) * (high - low) + low
        return drawn.to(dtype or torch.float32)

    def integers(self, low: int, high: int, *shape: int):
        """Int64 tensor [*shape] of integers in [low, high); without a shape one Python int."""
        if not shape:
            return self._random.randrange(low, high)
        import torch

        return torch.randint(low, high, shape, generator=self._generator())

    def ints(self, n: int, low: int, high: int) -> list[int]:
        """A list of n Python ints in [low, high)."""
        return [self._random.randrange(low, high) for _ in range(n)]

    def choice(self, items: Sequence):
        """One of the items."""
        return self._random.choice(items)

    def sample(self, items: Sequence, k: int) -> list:
        """k different items, in random order."""
        return self._random.sample(items, k)

    def shuffled(self, items: Sequence) -> list:
        """All items in random order, as a new list."""
        return self._random.sample(items, len(items))

    def text(self, n: int, alphabet: str = _MIXED) -> str:
        """n characters (code points) of `alphabet`: by default letters, spaces, digits, several scripts and emoji."""
        return "".join(self._random.choice(alphabet) for _ in range(n))

    def words(self, n: int, n_different: int = 12, alphabet: str = _LETTERS) -> list[str]:
        """n lower-case words of 2 to 7 letters, of which few are different, so that pairs of letters repeat."""
        stock = [self.text(self._random.randrange(2, 8), alphabet) for _ in range(n_different)]
        return [self._random.choice(stock) for _ in range(n)]

    def bytes(self, n: int) -> bytes:
        """n random bytes."""
        return self._random.getrandbits(8 * n).to_bytes(n, "big") if n else b""

    def _generator(self):
        if self._torch_generator is None:
            import torch

            self._torch_generator = torch.Generator().manual_seed(self._number)
        return self._torch_generator
