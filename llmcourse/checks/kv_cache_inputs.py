"""What lab 07 is checked with: its hints, a tiny random transformer that notes its calls, and ways to fill a cache."""

from __future__ import annotations

import torch

from llmcourse.model.config import ModelConfig
from llmcourse.ops.reference import grouped_attention, rope, rope_angles

HINTS = {
    "ConcatCache": (
        "What must a layer remember between two calls? And how does it know that it has seen nothing yet?",
        "K = the kept keys with the new ones behind them: torch.cat([kept, k]), along the tokens (dimension 0); the "
        "same for V.",
        "__init__: a list with one None for each layer, for k and for v. update: where the layer has None, keep a clone "
        "of k (the caller may reuse its memory); otherwise keep torch.cat([kept, k]). The same for v. Return both.",
    ),
    "PreallocatedCache": (
        "Reserve [L, capacity, Hkv, D] twice. What else must be known to find the place of the next token of layer 3?",
        "A layer with `length` tokens writes the n new ones at length … length + n − 1, and returns its first "
        "length + n.",
        "__init__: k and v = torch.empty(n_layers, capacity, n_kv_heads, head_dim); length = [0] * n_layers. update: "
        "start = length[layer], stop = start + k.shape[0]; if stop is more than the capacity raise ValueError now; write "
        "self.k[layer, start:stop] = k and the same for v; length[layer] = stop; return self.k[layer, :stop], "
        "self.v[layer, :stop].",
    ),
    "generate_cached": (
        "Which tokens has the model not seen yet: at first, and after each step?",
        "At first the whole prompt, at positions 0 … n − 1; then the newest token alone, at position T − 1, T counting it.",
        "cache = model.new_cache(len(ids) + max_new). pending = the prompt, n_past = 0. While fewer than max_new ids "
        "are there: logits = model(pending, positions n_past … n_past + len(pending) − 1, cache); add len(pending) to "
        "n_past; take the id with the largest logit; pending = that id alone.",
    ),
    "kv_bytes_per_token": (
        "What does one token leave behind in one layer? Count numbers first, bytes last.",
        "2 (keys and values) · L · Hkv · D · bytes of a number.",
        "2 * config.n_layers * config.n_kv_heads * config.head_dim * bytes_per_value.",
    ),
}

VOCAB, WIDTH, LAYERS, HEADS, KV_HEADS, HEAD_DIM, THETA = 31, 14, 3, 4, 2, 6, 50.0
SHARP, LOUD = 3.5, 6.0  # attention decides much, and depends on positions: a wrong one changes the text


class TinyModel:
    """A random transformer in float64, with the two methods that `generate_cached` is told of.

    `calls` notes the ids and positions of each call. Its attention looks at nothing but what the
    cache returned, so a token that is not there, or was computed at the wrong position, changes what follows.
    """

    def __init__(self, rng):
        def draw(out: int, into: int, gain: float) -> torch.Tensor:
            return rng.normal(out, into, dtype=torch.float64) * gain * into**-0.5

        q, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
        self.table, self.head = draw(VOCAB, WIDTH, WIDTH**0.5), draw(VOCAB, WIDTH, 1)
        self.layers = [
            (draw(q, WIDTH, SHARP), draw(kv, WIDTH, SHARP), draw(kv, WIDTH, 1), draw(WIDTH, q, LOUD))
            for _ in range(LAYERS)
        ]
        self.calls: list[tuple[list[int], list[int]]] = []

    def new_cache(self, capacity: int) -> TinyCache:
        return TinyCache(capacity)

    def __call__(self, ids, positions, cache) -> torch.Tensor:
        ids, positions = [int(i) for i in ids], [int(p) for p in positions]
        if len(ids) != len(positions):
            raise ValueError(f"{len(ids)} ids and {len(positions)} positions: each token needs one")
        self.calls.append((ids, positions))
        x, angles = self.table[ids], rope_angles(torch.tensor(positions), HEAD_DIM, THETA)
        for number, (q, k, v, o) in enumerate(self.layers):
            h = x / x.square().mean(-1, keepdim=True).sqrt()
            q, k, v = ((h @ W.T).view(len(ids), -1, HEAD_DIM) for W in (q, k, v))
            K, V = cache.update(number, rope(k, *angles), v)
            x = x + grouped_attention(rope(q, *angles), K, V, HEAD_DIM**-0.5).flatten(1) @ o.T
        return self.head @ x[-1]

    def greedy(self, ids: list[int], n: int) -> list[int]:
        """The text with n more ids, the whole of it computed anew for each; notes nothing."""
        text = list(ids)
        for _ in range(n):
            text.append(int(self(text, range(len(text)), TinyCache(len(text))).argmax()))
            self.calls.pop()
        return text


class TinyCache:
    """A right cache: lists of pieces, joined when they are asked for."""

    def __init__(self, capacity: int):
        self.capacity, self.kept = capacity, [([], []) for _ in range(LAYERS)]

    def update(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        for pieces, new in zip(self.kept[layer], (k, v)):
            pieces.append(new)
        K, V = (torch.cat(pieces) for pieces in self.kept[layer])
        if len(K) > self.capacity:
            raise ValueError(f"{len(K)} tokens do not fit into a cache for {self.capacity}")
        return K, V


def keys_and_values(rng, *sizes: int, heads: int = 2, head_dim: int = 5) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """A pair (k, v) of [n, heads, head_dim] for each n."""
    return [(rng.normal(n, heads, head_dim), rng.normal(n, heads, head_dim)) for n in sizes]


def feed(cache, layer: int, pieces) -> list[torch.Tensor]:
    """Update a layer with each piece in turn; the last K and V, as copies."""
    for k, v in pieces:
        K, V = cache.update(layer, k, v)
    return [K.clone(), V.clone()]


def tried(cache, layer: int, piece) -> list[torch.Tensor] | str:
    """Update a layer with one piece: K and V as copies, or "ValueError" where the cache refused it."""
    try:
        return feed(cache, layer, [piece])
    except ValueError:
        return "ValueError"


def sizes(
    n_layers: int = 1, n_heads: int = 1, n_kv_heads: int = 1, head_dim: int = 8, width: int | None = None
) -> ModelConfig:
    """A config with these sizes; width is n_heads · head_dim unless it is given."""
    return ModelConfig(
        "a model", vocab_size=97, width=width or n_heads * head_dim, n_layers=n_layers, n_heads=n_heads,
        n_kv_heads=n_kv_heads, head_dim=head_dim, ffn_width=64, context=128,
    )  # fmt: skip
