"""Lab 01: the learner's tokenizer and stream decoder."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace

from llmcourse.ops import Parts
from llmcourse.text.stream import StopFinder

from .stage import Stage, Use

def learner_tokenizer(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """`encode` turns text into ids, `decode` ids into text; special tokens and chat templates stay the model's."""
    encode, decode = use("01.encode", answers["encode"]), use("01.decode", answers["decode"])

    def wrap(tokenizer):
        mine = copy.copy(tokenizer)
        mine.bpe = LearnerBPE(tokenizer.bpe, encode)
        mine.decode = lambda ids: decode(list(ids), tokenizer.vocab)
        return mine

    return _with_tokenizer(parts, wrap)


class LearnerBPE:
    """Stands where a `BPE` stands, with the learner's `encode(text, merges, vocab)`, which cuts the text itself."""

    def __init__(self, bpe, encode: Callable):
        self.vocab, self.merges, self._encode = bpe.vocab, bpe.merges, encode

    def encode_pieces(self, pieces: Iterable[str]) -> list[int]:
        """Ids of pieces of text, one after the other: one call for all of them, since a learner's `encode` may be slow."""
        return self._encode("".join(pieces), self.merges, self.vocab)


def learner_stream(parts: Parts, answers: dict[str, object], use: Use) -> Parts:
    """The learner's `StreamDecoder` turns ids into text; looking for stop strings in that text stays ours."""
    made = answers["StreamDecoder"]

    def wrap(tokenizer):
        mine, vocab = copy.copy(tokenizer), tokenizer.vocab
        mine.stream = lambda stop=(): LearnerStream(made, vocab, stop, use)
        return mine

    return _with_tokenizer(parts, wrap)


class LearnerStream:
    """The engine's stream decoder, with the learner's inside."""

    def __init__(self, made: Callable, vocab: dict[bytes, int], stop: str | Iterable[str], use: Use):
        decoder = use("01.StreamDecoder", made)(vocab)
        self._push = use("01.StreamDecoder", lambda token: decoder.push(token))
        self._finish = use("01.StreamDecoder", lambda: decoder.finish())
        self._finder = StopFinder((stop,) if isinstance(stop, str) else tuple(stop))

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found."""
        return self._finder.found is not None

    def push(self, token: int) -> str:
        """What the learner's decoder gives for this id, less what may be the start of a stop string."""
        return "" if self.stopped else self._finder.feed(self._push(token))

    def finish(self) -> str:
        """The rest."""
        return "" if self.stopped else self._finder.feed(self._finish()) + self._finder.rest()


def _with_tokenizer(parts: Parts, wrap: Callable) -> Parts:
    before = parts.tokenizer

    def replaced(tokenizer):
        tokenizer = before(tokenizer)
        return wrap(tokenizer) if hasattr(tokenizer, "vocab") else tokenizer  # a model without one takes and gives ids only

    return replace(parts, tokenizer=replaced)


STAGES = (
    Stage("tokenizer", ("01.encode", "01.decode"), learner_tokenizer),
    Stage("stream decoder", ("01.StreamDecoder",), learner_stream),
)
