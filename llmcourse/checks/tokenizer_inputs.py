"""What lab 01 is checked with: its hints, a slice of the real vocabulary, and vocabularies whose ids mean nothing."""

from __future__ import annotations

import json
from pathlib import Path

from llmcourse.text.bpe import train_bpe

Vocabulary = dict[bytes, int]
Merges = list[tuple[bytes, bytes]]

HINTS = {
    "count_pairs": (
        "Two neighbours in a word are a pair. Which pairs does the word 1 2 3 have? And if that word occurs five "
        "times?",
        "count of (a, b) = sum over words of times × how many places in the word have a followed by b.",
        "Start with an empty dict. For each (ids, times), walk over zip(ids, ids[1:]) and add times to that "
        "pair's count.",
    ),
    "merge_pair": (
        "Walk through the list once, and look at two neighbours at a time.",
        "If ids[i] and ids[i + 1] are the pair, write new_id and go on at i + 2; otherwise copy ids[i] and go on "
        "at i + 1.",
        "merged = [], i = 0. While i < len(ids): if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair, append "
        "new_id and add 2 to i; else append ids[i] and add 1. Return merged.",
    ),
    "train_bpe": (
        "Do what the lesson's picture does: count, merge the winner everywhere, count again.",
        "The winner is min(counts, key=lambda pair: (-counts[pair], pair)): highest count first, then smallest "
        "pair. Merge number i makes the token with id 256 + i.",
        "1. Counter(split(text)) gives each piece and how often it occurs; turn each into (list of its bytes, "
        "times). 2. Keep a dict from id to bytes: at first byte b has id b. 3. While there are fewer than "
        "vocab_size tokens: count_pairs; stop if there are none; take the winner; note its two byte strings in "
        "merges; give the new token the next id; merge_pair in every word.",
    ),
    "encode": (
        "Encoding replays the training: of the pairs that stand in the piece now, which one was learned first?",
        "Start each piece as single bytes. Again and again, merge (everywhere in the piece) the pair with the "
        "lowest place in merges, until no neighbouring pair is in merges. Then look the tokens up in vocab.",
        "rank = {pair: place for place, pair in enumerate(merges)}. For each piece of split(text): tokens = its "
        "single bytes, as bytes objects, without those that vocab lacks; while some pair of neighbours is in "
        "rank: take the one of lowest rank and call merge_pair(tokens, pair, pair[0] + pair[1]), which works on "
        "bytes as well as on ints; add vocab[token] for each token.",
    ),
    "decode": (
        "vocab goes from bytes to ids. You need the other direction.",
        "text = (all tokens' bytes, joined).decode(\"utf-8\", errors=\"replace\"): join first, decode once.",
        "bytes_of = {id: token for token, id in vocab.items()}; b\"\".join(bytes_of[id] for id in ids); then "
        "decode it.",
    ),
    "StreamDecoder": (
        "Bytes of an unfinished character must wait for the next token. What tells you that a character is "
        "unfinished?",
        "Keep what is not yet shown. After each token: show all complete characters, keep the unfinished rest. "
        "Python has this built in: codecs.getincrementaldecoder(\"utf-8\")(\"replace\").",
        "__init__: turn vocab around, and make the incremental decoder. push: return decoder.decode(the token's "
        "bytes). finish: return decoder.decode(b\"\", final=True), which turns an unfinished rest into \ufffd.",
    ),
}


def real_slice() -> tuple[Merges, Vocabulary]:
    """The default model's byte tokens and its first 2,000 merges, with their real ids (id = 252 + rank)."""
    stored = json.loads((Path(__file__).with_name("data") / "smollm2_slice.json").read_text("utf-8"))
    bytes_of = {token: bytes([byte]) for byte, token in stored["bytes"]}
    merges = []
    for left, right, new in stored["merges"]:
        merges.append((bytes_of[left], bytes_of[right]))
        bytes_of[new] = bytes_of[left] + bytes_of[right]
    return merges, {piece: token for token, piece in bytes_of.items()}


REAL_MERGES, REAL_VOCAB = real_slice()
ENGLISH = ("The station was almost empty. On the second platform a man with two suitcases was waiting for the train "
           "to the sea; nobody had told him that it had left at six, and that the next one would come in the morning.")


def with_ids(rng, merges: Merges = (), extra=()) -> Vocabulary:
    """A vocabulary of all bytes, the tokens of these merges and some extra ones, with ids that mean nothing."""
    tokens = list(dict.fromkeys([*(bytes([b]) for b in range(256)), *(left + right for left, right in merges), *extra]))
    return dict(zip(tokens, rng.sample(range(10, 4000), len(tokens))))


def learned(rng, n: int, n_merges: int) -> Merges:
    """Merges trained on n random words."""
    return train_bpe(" ".join(rng.words(n)), 256 + n_merges)


def cut(rng, raw: bytes) -> list[bytes]:
    """The bytes cut into tokens of 1 to 3 bytes, in the middle of characters too."""
    tokens = []
    while raw:
        size = rng.integers(1, 4)
        tokens.append(raw[:size])
        raw = raw[size:]
    return tokens


def streamed(answer, vocab: Vocabulary, ids: list[int]) -> list[str]:
    """What a StreamDecoder says at each push, and at the end."""
    decoder = answer.StreamDecoder(vocab)
    return [*(decoder.push(token) for token in ids), decoder.finish()]
