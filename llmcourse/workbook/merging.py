"""BPE in slow motion: `replay` gives the words after every merge, with the counts that decided it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from llmcourse.text.bpe import merge_pair, train_bpe

Pair = tuple[bytes, bytes]


@dataclass(frozen=True)
class MergeStep:
    """The words at one moment.

    merged: the pair that was merged to get here (None at the start) and count, how often it stood in the text.
    words: each word's tokens, in the order of the words.
    """

    merged: Pair | None
    count: int
    words: tuple[tuple[bytes, ...], ...]


def replay(words: Mapping[str, int], n_merges: int) -> list[MergeStep]:
    """Train on words that occur so many times each; the start and then one MergeStep a merge, n_merges or fewer in all."""
    pieces = list(Counter(words).elements())
    present = [tuple(bytes([byte]) for byte in word.encode()) for word in words]
    steps = [MergeStep(None, 0, tuple(present))]
    for left, right in train_bpe(pieces, 256 + n_merges):
        count = pair_counts(present, words)[left, right]
        present = [tuple(merge_pair(word, (left, right), left + right)) for word in present]
        steps.append(MergeStep((left, right), count, tuple(present)))
    return steps


def pair_counts(split_words, words: Mapping[str, int]) -> Counter[Pair]:
    """How often each pair of neighbouring tokens stands in the text. split_words: each word's tokens, as in a MergeStep."""
    counts: Counter[Pair] = Counter()
    for tokens, times in zip(split_words, words.values()):
        for pair in pairwise(tokens):
            counts[pair] += times
    return counts
