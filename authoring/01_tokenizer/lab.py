# %% [markdown]
# # Lab 01 · Build the tokenizer
# Six exercises, about ninety minutes. At the end your tokenizer feeds the real model, with its real vocabulary of V
# tokens.
#
# | letter or word | meaning |
# |---|---|
# | V | vocabulary: how many different tokens there are |
# | pair | two tokens that stand next to each other |
# | merge | the decision to turn a pair into one new token |
# | rank | the place of a merge in the order of learning: 0 was learned first |
# | piece | a part of the text that no token reaches across: a word with its space, a number, some signs |

# %%
import codecs
from collections import Counter

from llmcourse import load_tokenizer
from llmcourse.text.bpe import train_bpe as reference_train_bpe
from llmcourse.text.corpus import speeches
from llmcourse.text.pattern import split
from llmcourse.workbook import check, hint, run_mine, your_code
from llmcourse.workbook.languages import sentences

# %% [markdown]
# One thing is given: `split(text)` cuts a text into pieces, as SmolLM2 does. Cutting is a regular expression and
# teaches you little; what happens *inside* the pieces is yours.

# %%
split("It's 12 cats, isn't it?")

# %% [markdown]
# ### 01.1 Count the pairs
# Training asks one question again and again: which two neighbours stand together most often?
#
# *difficulty 1/5 · 10 minutes · unlocks: training, in exercise 01.3*

# %% ex="count_pairs"
def count_pairs(words: list[tuple[list[int], int]]) -> dict[tuple[int, int], int]:
    """How often each pair of neighbouring ids stands in the text.

    Args:
        words: the different pieces of the text, each as (ids, times): its ids, a list of ints,
            and how often it occurs in the text.

    Returns a dict from (left id, right id) to the number of places in the whole text where left
    is followed by right. Overlapping places count: 1 1 1 has the pair (1, 1) twice. No pair
    reaches from one word into another, and pairs that do not occur are not in the dict.

    Example: count_pairs([([1, 2, 3], 5), ([1, 2], 2)]) == {(1, 2): 7, (2, 3): 5}.
    """
    ### BEGIN SOLUTION
    counts: dict[tuple[int, int], int] = {}
    for ids, times in words:
        for pair in zip(ids, ids[1:]):
            counts[pair] = counts.get(pair, 0) + times
    return counts
    ### END SOLUTION

# %% check="count_pairs"
check("01.count_pairs", count_pairs=count_pairs)

# %% [markdown]
# ### 01.2 Merge one pair
# The winner of the count becomes a token of its own, wherever it stands.
#
# *difficulty 2/5 · 15 minutes · unlocks: training and encoding, in exercises 01.3 and 01.4*

# %% ex="merge_pair"
def merge_pair(ids: list[int], pair: tuple[int, int], new_id: int) -> list[int]:
    """The ids with `pair` replaced by `new_id` wherever it stands, from left to right.

    Args:
        ids: a list [n] of ints, n ≥ 0. It stays as it was.
        pair: (left, right).
        new_id: what is written in the place of the two.

    Returns a new list. An id is used in one merge only: after a merge, go on behind both of its
    members. (Nothing here needs numbers: it works the same on a list of bytes objects, and
    `encode` will be glad of that.)

    Example: merge_pair([1, 1, 1, 2], (1, 1), 9) == [9, 1, 2], not [9, 9, 2].
    """
    ### BEGIN SOLUTION
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged
    ### END SOLUTION

# %% check="merge_pair"
check("01.merge_pair", merge_pair=merge_pair)

# %% [markdown]
# ### 01.3 Train
# Now the loop of the lesson: count, merge the winner, count again.
#
# *difficulty 3/5 · 25 minutes · unlocks: a vocabulary of your own*

# %% ex="train_bpe"
def train_bpe(text: str, vocab_size: int) -> list[tuple[bytes, bytes]]:
    """Learn merges from a text until there are `vocab_size` tokens.

    Args:
        text: what to learn from. It is cut by `split`, and pairs are counted inside the pieces.
        vocab_size: how many tokens to end with. The first 256 are the bytes (byte b has id b);
            merge number i, counted from 0, makes the token with id 256 + i.

    Returns the merges in the order of learning, each as the bytes of its two tokens.
    The rule: the pair with the highest count is merged; of equal counts, the smallest pair of ids
    (tuples of ints compare just so). When no pair is left, training ends early. Raises ValueError
    when vocab_size is less than 256.

    Example: train_bpe("aaab aaab", 258) == [(b"a", b"a"), (b"a", b"b")]. At first (a, a) counts
    most, since aaa holds it twice. After that merge a piece reads aa a b. Now (aa, a) and (a, b)
    have equal counts, and the smaller pair of ids wins, (97, 98) before (256, 97).
    """
    ### BEGIN SOLUTION
    if vocab_size < 256:
        raise ValueError(f"vocab_size {vocab_size} is less than the 256 bytes")
    words = [(list(piece.encode()), times) for piece, times in Counter(split(text)).items()]
    bytes_of = {byte: bytes([byte]) for byte in range(256)}
    merges: list[tuple[bytes, bytes]] = []
    while len(bytes_of) < vocab_size:
        counts = count_pairs(words)
        if not counts:
            break
        pair = min(counts, key=lambda pair: (-counts[pair], pair))
        left, right = bytes_of[pair[0]], bytes_of[pair[1]]
        new_id = len(bytes_of)
        merges.append((left, right))
        bytes_of[new_id] = left + right
        words = [(merge_pair(ids, pair, new_id), times) for ids, times in words]
    return merges
    ### END SOLUTION

# %% check="train_bpe"
check("01.train_bpe", train_bpe=train_bpe)

# %% [markdown]
# Train it on a real text, the first message of a president to Congress (1790), and look at what it learned.

# %%
# NBVAL_CHECK_OUTPUT
washington = speeches()["1790-Washington-1"]
with your_code():
    merges = train_bpe(washington, 256 + 60)
    print([(left + right).decode() for left, right in merges])
    print("the same as the course's own:", merges == reference_train_bpe(washington, 256 + 60))

# %% [markdown]
# ### 01.4 Encode
# Encoding new text replays the training. Of all pairs that stand in a piece, the one that was learned first is merged
# first; then look again.
#
# The ids come from `vocab`, and you must not guess them. In SmolLM2's vocabulary the special tokens came first, so
# byte tokens and merges have other ids than in your training, and a few bytes have no token at all.
#
# *difficulty 3/5 · 20 minutes · unlocks: the engine's tokenizer (together with 01.5)*

# %% ex="encode"
def encode(text: str, merges: list[tuple[bytes, bytes]], vocab: dict[bytes, int]) -> list[int]:
    """The ids of a text.

    Args:
        text: any text; "" gives []. It is cut by `split`, and nothing merges across pieces.
        merges: pairs of tokens, as bytes, in the order of learning.
        vocab: the id of each token, from its bytes. It has left + right for each pair in merges.

    Returns the ids, a list of ints. Each piece starts as single bytes (a byte that vocab lacks is
    left out). Then, while any two neighbours are a pair of merges, the pair that was learned
    first is merged wherever it stands in the piece.

    Example: with merges [(b"b", b"c"), (b"a", b"b")] the text "abc" becomes a bc, and not ab c,
    since the pair of b and c was learned first. With the vocab
    {b"a": 7, b"b": 2, b"c": 5, b"bc": 30, b"ab": 12} that is [7, 30].
    """
    ### BEGIN SOLUTION
    rank = {pair: place for place, pair in enumerate(merges)}
    ids: list[int] = []
    for piece in split(text):
        tokens = [bytes([byte]) for byte in piece.encode() if bytes([byte]) in vocab]
        while True:
            present = [pair for pair in zip(tokens, tokens[1:]) if pair in rank]
            if not present:
                break
            first = min(present, key=rank.__getitem__)
            tokens = merge_pair(tokens, first, first[0] + first[1])
        ids += [vocab[token] for token in tokens]
    return ids
    ### END SOLUTION

# %% check="encode"
check("01.encode", encode=encode)

# %% [markdown]
# ### 01.5 Decode
# The way back looks too easy to go wrong. It has one trap, and half the world's writing falls into it.
#
# *difficulty 1/5 · 10 minutes · unlocks: the engine's tokenizer (together with 01.4)*

# %% ex="decode"
def decode(ids: list[int], vocab: dict[bytes, int]) -> str:
    r"""The text of some ids.

    Args:
        ids: a list [n] of ints, n ≥ 0.
        vocab: the id of each token, from its bytes.

    Returns the text. Bytes that are no valid UTF-8 appear as U+FFFD, the sign �, as
    bytes.decode("utf-8", errors="replace") makes it. Raises KeyError for an id that is not in
    vocab.

    Example: with vocab {b"h": 4, b"\xc3": 8, b"\xa9": 1} the ids [4, 8, 1] give "hé": the last
    two tokens are the two bytes of é, and neither is a character alone.
    """
    ### BEGIN SOLUTION
    bytes_of = {token_id: token for token, token_id in vocab.items()}
    return b"".join(bytes_of[token_id] for token_id in ids).decode("utf-8", errors="replace")
    ### END SOLUTION

# %% check="decode"
check("01.decode", decode=decode)

# %% [markdown]
# ### 01.6 Decode a stream
# A chat shows every token as it comes. But a token may end in the middle of a character, and half a character must
# never be shown: what was sent cannot be taken back.
#
# *difficulty 2/5 · 15 minutes · unlocks: the engine's stream decoder*

# %% ex="StreamDecoder"
class StreamDecoder:
    r"""Turns the ids of one answer into text, as they come.

    Args:
        vocab: the id of each token, from its bytes.

    push(id): takes the next id, returns the text that is certain now. Complete characters are
        shown at once; bytes that may still become a character wait for the next token, so the
        text may be "", or longer than this token's.
    finish(): returns what still waits when the answer is over: U+FFFD, the sign �, for an
        unfinished character, or the empty text.

    Everything returned, joined, is what `decode` gives for all the ids at once. Two decoders know
    nothing of each other.

    Example: with vocab {b"h": 4, b"\xc3": 8, b"\xa9": 1}, push(4) is "h", push(8) is "", push(1)
    is "é", finish() is "". After push(8) alone, finish() is "�".
    """

    ### BEGIN SOLUTION
    def __init__(self, vocab: dict[bytes, int]):
        self._bytes_of = {token_id: token for token, token_id in vocab.items()}
        self._waiting = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, id: int) -> str:
        return self._waiting.decode(self._bytes_of[id])

    def finish(self) -> str:
        return self._waiting.decode(b"", final=True)
    ### END SOLUTION

# %% check="StreamDecoder"
check("01.StreamDecoder", StreamDecoder=StreamDecoder)

# %% [markdown]
# ## Your tokenizer and the real vocabulary
# Now the test that counts: SmolLM2's own vocabulary and all its merges, and texts that are not kind: a speech, code,
# one sentence in many languages, emoji. Your ids must be the reference's, all of them.

# %%
reference = load_tokenizer()
real_merges, real_vocab = reference.bpe.merges, reference.bpe.vocab
texts = {
    "a speech": washington,
    "code": "def f(x):\n\treturn {'a': x**2, \"b\": 0x1F}  # naïve\r\n\n\n    pass",
    "numbers": "On 24.12.1999 it cost 1,234.50 €;  ½ of 10² is 50.",
    "emoji": "👩🏽‍🚀 lands 🙂🙂🙂 … ✓",
    **{one.language: one.text for one in sentences().values()},
}

# %%
# NBVAL_CHECK_OUTPUT
with your_code():
    n_ids, differing = 0, []
    for name, text in texts.items():
        mine = encode(text, real_merges, real_vocab)
        n_ids += len(mine)
        if mine != reference.encode(text) or decode(mine, real_vocab) != text:
            differing.append(name)
    print(f"{len(texts)} texts, {n_ids} ids, V = {reference.vocab_size}")
    print("texts where yours differs from the reference:", differing or "none")

# %% [markdown]
# And the stream: an answer with an emoji, token by token, as a careless program would show it, and as yours does.

# %%
# NBVAL_CHECK_OUTPUT
answer = reference.encode("Well done 👩‍🚀!")
with your_code():
    decoder = StreamDecoder(real_vocab)
    print("careless:", [decode([token_id], real_vocab) for token_id in answer])
    print("yours:   ", [decoder.push(token_id) for token_id in answer] + [decoder.finish()])

# %% [markdown]
# ## Your tokenizer in the engine
# **Save this notebook first.** The next cell reads it as a file, checks your answers, and runs the real model with
# every stage that passes. The table says whose code ran, and how often it was called.

# %%
result = run_mine("The capital of France is", folder=".", max_tokens=12)

# %% [markdown]
# Two stages of the engine are yours now. From a terminal the same is `llmcourse generate "…" --mine`.
#
# Your `encode` is right, but it is not quick: it builds its table anew for every call, and it looks through the whole
# piece after each merge. The course's own does the same work with a heap (`llmcourse/text/bpe.py`); read it and find
# the two tricks.
#
# Next: the ids become vectors, and something odd happens to their directions. **Lesson 02.**
