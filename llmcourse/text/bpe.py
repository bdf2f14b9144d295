"""Byte-level BPE: merge the commonest pair of tokens, again and again.

Training starts from the 256 bytes and makes one new token at a time out of the commonest pair of neighbours. The
result is the list of those pairs, in order. Encoding replays the list on new text: of all pairs that stand next to
each other, the one that was learned first is merged first. Decoding joins the bytes of the tokens.

Source: Sennrich, Haddow and Birch 2016, "Neural Machine Translation of Rare Words with Subword Units", section 3.2;
on bytes: Radford et al. 2019 (GPT-2), section 2.2.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import AnyStr

from llmcourse.errors import TokenizerError
from llmcourse.text.pattern import Cut, split, without_surrogates

N_BYTES = 256
CACHED_PIECES = 65_536
CACHED_LETTERS = 64  # longer pieces hardly ever come twice

Pair = tuple[int, int]


def train_bpe(
    text: str | Iterable[str], vocab_size: int, pattern: str | Sequence[Cut] = "smollm2"
) -> list[tuple[bytes, bytes]]:
    """Learn merges until the vocabulary (the 256 bytes, and one token a merge) has `vocab_size` tokens.

    text: a string, which `pattern` cuts into pieces, or the pieces themselves.
    Returns the merged pairs as bytes, in the order in which they were learned; `vocabulary` numbers their tokens.

    The rule: the pair with the highest count is merged; of equal counts, the smallest pair of ids, where byte b has
    id b and learned tokens are numbered from 256 on as they appear. So the result never depends on the order of the
    text or of a dict. Training stops early, with fewer merges than asked for, when no pair is left: every piece is
    then a single token.

    Example: train_bpe("aaab aaab", 258) == [(b"a", b"a"), (b"a", b"b")]. "a"+"a" stands there four times, overlaps
    included. Then both "aa"+"a" and "a"+"b" stand there twice, and id 97 is smaller than id 256.
    Raises TokenizerError when vocab_size < 256.
    """
    if vocab_size < N_BYTES:
        raise TokenizerError(f"vocab_size {vocab_size} is less than the {N_BYTES} bytes that every vocabulary holds; "
                             f"ask for {N_BYTES} or more")
    pieces = split(text, pattern) if isinstance(text, str) else text
    table = _PairTable(Counter(pieces))
    tokens = [bytes([byte]) for byte in range(N_BYTES)]
    merges = []
    while len(tokens) < vocab_size and (pair := table.commonest()) is not None:
        left, right = tokens[pair[0]], tokens[pair[1]]
        merges.append((left, right))
        table.merge(pair, new_id=len(tokens))
        tokens.append(left + right)
    return merges


def vocabulary(merges: Iterable[tuple[bytes, bytes]]) -> dict[bytes, int]:
    """Ids of the tokens that `train_bpe` learned: byte b has id b, the merged tokens follow in order from 256 on."""
    vocab = {bytes([byte]): byte for byte in range(N_BYTES)}
    for left, right in merges:
        vocab[left + right] = len(vocab)
    return vocab


class _PairTable:
    """How often each pair of neighbours stands in the words, kept up to date merge by merge.

    Counting all pairs anew after every merge would cost (text × merges). A merge changes only the words that hold
    the pair, so we remember which those are, and recount them alone.
    """

    def __init__(self, words: dict[str, int]):
        self.words = [list(without_surrogates(word).encode()) for word in words]
        self.times = list(words.values())
        self.counts: Counter[Pair] = Counter()
        self.where: defaultdict[Pair, set[int]] = defaultdict(set)  # may also name words that held the pair once
        for word in range(len(self.words)):
            self._count(word, +1)
        self.heap = [(-count, pair) for pair, count in self.counts.items()]
        heapify(self.heap)

    def commonest(self) -> Pair | None:
        """The pair with the highest count, the smallest of several; None when there is none."""
        while self.heap:
            count, pair = self.heap[0]
            if self.counts[pair] == -count:
                return pair
            heappop(self.heap)  # an outdated count: the pair's present one is in the heap as well
        return None

    def merge(self, pair: Pair, new_id: int) -> None:
        """Write `new_id` in place of every `pair`, from left to right, and bring the counts up to date."""
        changed: set[Pair] = set()
        for word in self.where.pop(pair):
            merged = merge_pair(self.words[word], pair, new_id)
            if len(merged) == len(self.words[word]):
                continue
            changed |= self._count(word, -1)
            self.words[word] = merged
            changed |= self._count(word, +1)
        for each in changed:
            if self.counts[each] > 0:
                heappush(self.heap, (-self.counts[each], each))
            else:
                del self.counts[each]

    def _count(self, word: int, sign: int) -> set[Pair]:
        pairs = list(pairwise(self.words[word]))
        for pair in pairs:
            self.counts[pair] += sign * self.times[word]
            self.where[pair].add(word)
        return set(pairs)


def merge_pair(ids: Sequence[int], pair: Pair, new_id: int) -> list[int]:
    """`ids` with every `pair` replaced by `new_id`, from left to right: ([1, 1, 1], (1, 1), 9) gives [9, 1]."""
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and ids[i] == pair[0] and ids[i + 1] == pair[1]:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


class BPE:
    """A vocabulary and its merges: bytes to ids and back.

    vocab: token bytes → id; the ids may be any numbers ≥ 0.
    merges: pairs of token bytes, those learned first come first.
    ignore_merges: a piece that is itself a token becomes that token, whatever the merges say (Llama 3).
    bytes_of: id → token bytes.
    Raises TokenizerError when a merge names a token that the vocabulary lacks.

    A byte without a token in `vocab` is dropped from the text, with one warning in the life of the object.
    """

    def __init__(self, vocab: dict[bytes, int], merges: Iterable[tuple[bytes, bytes]], *, ignore_merges: bool = False):
        self.vocab = vocab
        self.ignore_merges = ignore_merges
        self.bytes_of = {token_id: token for token, token_id in vocab.items()}
        self._byte_ids = [vocab.get(bytes([byte])) for byte in range(N_BYTES)]
        self._rules: dict[Pair, tuple[int, int]] = {}  # two ids → (rank, id of the merged token)
        for rank, (left, right) in enumerate(merges):
            self._add_rule(rank, left, right, vocab)
        self._cache: dict[str, list[int]] = {}
        self._warned = False

    def _add_rule(self, rank: int, left: AnyStr, right: AnyStr, vocab: Mapping[AnyStr, int]) -> None:
        try:
            self._rules[vocab[left], vocab[right]] = rank, vocab[left + right]
        except KeyError as missing:
            raise TokenizerError(f"merge {rank} ({left!r} + {right!r}) needs the token {missing}, which the "
                                 "vocabulary lacks; vocabulary and merges do not belong together") from None

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """Pairs of token bytes, those learned first come first."""
        pairs = sorted(self._rules, key=lambda pair: self._rules[pair][0])
        return [(self.bytes_of[left], self.bytes_of[right]) for left, right in pairs]

    @property
    def missing_bytes(self) -> bytes:
        """The bytes that no token of the vocabulary stands for, in ascending order."""
        return bytes(byte for byte, token_id in enumerate(self._byte_ids) if token_id is None)

    def encode_pieces(self, pieces: Iterable[str]) -> list[int]:
        """Ids of pieces of text, one after the other. Pieces come again and again, so their ids are remembered."""
        cache, ids = self._cache, []
        for piece in pieces:
            known = cache.get(piece)
            if known is None:
                known = self.encode_piece(piece)
                if len(piece) <= CACHED_LETTERS:
                    if len(cache) >= CACHED_PIECES:
                        cache.clear()
                    cache[piece] = known
            ids += known
        return ids

    def encode_piece(self, piece: str) -> list[int]:
        """Ids of one piece of text."""
        return self.encode(piece.encode())

    def written(self, content: str) -> bytes:
        """The bytes that a token added beside the vocabulary stands for."""
        return content.encode()

    def encode(self, piece: bytes) -> list[int]:
        """Ids of one piece, given as bytes."""
        if self.ignore_merges and piece in self.vocab:
            return [self.vocab[piece]]
        ids: list[int | None] = [self._byte_ids[byte] for byte in piece]
        if None in ids:
            self._warn_of_missing_bytes()
            ids = [token_id for token_id in ids if token_id is not None]
        return self.merged(ids)

    def merged(self, ids: list[int | None]) -> list[int]:
        """`ids` after all merges, in the order in which they were learned, leftmost first. (Uses up the list.)

        Takes time in proportion to n log n for n ids: the candidate pairs wait in a heap, and the tokens form a
        linked list, in which two become one without moving the others.
        """
        rules, end = self._rules, len(ids)
        ids.append(None)  # a neighbour for the last token, that merges with nothing
        before, after = list(range(-1, end)), list(range(1, end + 2))
        heap = [(rules[pair][0], i) for i, pair in enumerate(pairwise(ids)) if pair in rules]
        heapify(heap)
        while heap:
            rank, i = heappop(heap)
            j = after[i]
            rule = rules.get((ids[i], ids[j]))
            if rule is None or rule[0] != rank:
                continue  # one of the two has gone into another token since
            ids[i], ids[j] = rule[1], None
            after[i] = right = after[j]
            before[right] = i
            for k in (before[i], i):  # the new token's two neighbours may now merge with it
                if k >= 0 and (rule := rules.get((ids[k], ids[after[k]]))):
                    heappush(heap, (rule[0], k))
        return [token_id for token_id in ids if token_id is not None]

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes of tokens, joined. Raises TokenizerError for an id that the vocabulary lacks."""
        try:
            return b"".join([self.bytes_of[token_id] for token_id in ids])
        except KeyError as missing:
            raise TokenizerError(f"there is no token {missing} in this vocabulary of {len(self.vocab)}") from None

    def _warn_of_missing_bytes(self) -> None:
        if not self._warned:
            self._warned = True
            names = self.missing_bytes.hex(" ").upper()
            warnings.warn(f"text holds bytes without a token, which are dropped; this vocabulary lacks {names}",
                          stacklevel=2)
