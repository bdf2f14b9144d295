"""Named wrong answers of lab 01."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from llmcourse.checks import edited, wrong

# ---- count_pairs ----

edited("count_pairs", "counts_every_word_once", old="+ times", new="+ 1",
       says="adds `times`", why="It counts every word once, however often the word occurs.")


@wrong("count_pairs", says="overlapping ones too")
def steps_over_the_pair(words):
    """It goes on behind the pair that it counted, so overlapping places are missed."""
    counts = Counter()
    for ids, times in words:
        for i in range(0, len(ids) - 1, 2):
            counts[ids[i], ids[i + 1]] += times
    return counts


@wrong("count_pairs", says="Their order matters")
def sorted_pairs(words):
    """It takes (1, 2) and (2, 1) for the same pair."""
    counts = Counter()
    for ids, times in words:
        for left, right in pairwise(ids):
            counts[min(left, right), max(left, right)] += times
    return counts


@wrong("count_pairs", says="from the end of one word into the next")
def across_words(words):
    """It joins all words into one list, so a pair reaches from the end of one into the next."""
    counts = Counter(pairwise([i for ids, times in words for i in ids]))
    for ids, times in words:
        for pair in pairwise(ids):
            counts[pair] += times - 1
    return counts


@wrong("count_pairs", says="Count places")
def once_a_word(words):
    """It counts in how many words a pair occurs, not at how many places."""
    counts = Counter()
    for ids, times in words:
        for pair in set(pairwise(ids)):
            counts[pair] += times
    return counts


# ---- merge_pair ----

edited("merge_pair", "uses_a_member_twice", old="i += 2", new="i += 1",
       says="go on behind both", why="After a merge it goes on at i + 1, so a member of the pair appears again.")

edited("merge_pair", "drops_the_last", old="while i < len(ids):", new="while i < len(ids) - 1:",
       says="The last id", why="It stops one short, so a last id that is in no pair is lost.")

edited("merge_pair", "either_order", old="(ids[i], ids[i + 1]) == pair", new="{ids[i], ids[i + 1]} == set(pair)",
       says="(1, 2) is not (2, 1)", why="It compares without order, so (2, 1) is merged like (1, 2).")


@wrong("merge_pair", says="build a new one")
def in_place(ids, pair, new_id):
    """It writes into the list that came in, and the caller's list changes."""
    i = 0
    while i + 1 < len(ids):
        if (ids[i], ids[i + 1]) == pair:
            ids[i : i + 2] = [new_id]
        i += 1
    return ids


@wrong("merge_pair", says="at its start")
def from_the_right(ids, pair, new_id):
    """It goes from right to left, so 1 1 1 becomes 1 9 instead of 9 1."""
    merged, i = [], len(ids) - 1
    while i >= 0:
        if i > 0 and (ids[i - 1], ids[i]) == pair:
            merged.append(new_id)
            i -= 2
        else:
            merged.append(ids[i])
            i -= 1
    return merged[::-1]


@wrong("merge_pair", says="Each place where the pair stands")
def only_the_first(ids, pair, new_id):
    """It merges the first place only and copies the rest."""
    for i, both in enumerate(pairwise(ids)):
        if both == pair:
            return [*ids[:i], new_id, *ids[i + 2 :]]
    return list(ids)


# ---- train_bpe ----

edited("train_bpe", "largest_of_equal_pairs", old="min(counts, key=lambda pair: (-counts[pair], pair))",
       new="max(counts, key=lambda pair: (counts[pair], pair))",
       says="the smallest pair of ids wins", why="Of equal counts it takes the largest pair of ids, not the smallest.")

edited("train_bpe", "first_seen_of_equal_pairs", old="min(counts, key=lambda pair: (-counts[pair], pair))",
       new="max(counts, key=counts.get)", says="wherever it stands in the text",
       why="Of equal counts it takes the pair that it met first, so the result depends on the order of the text.")

edited("train_bpe", "ties_by_bytes", old="(-counts[pair], pair)",
       new="(-counts[pair], bytes_of[pair[0]], bytes_of[pair[1]])",
       says="Ties go by ids", why="Of equal counts it takes the smallest bytes; the rule says the smallest ids.")

edited("train_bpe", "never_splits", old="Counter(split(text))", new="Counter([text])",
       says="never across", why="It does not cut the text with split, so tokens reach over spaces and signs.")

edited("train_bpe", "letters_not_bytes", old="list(piece.encode())", new="[ord(letter) % 256 for letter in piece]",
       says="Train on bytes", why="It trains on the numbers of letters; é is one letter, but two bytes.")

edited("train_bpe", "vocab_size_without_bytes", old="while len(bytes_of) < vocab_size",
       new="while len(merges) < vocab_size",
       says="the 256 bytes included", why="It learns vocab_size merges; the 256 bytes count as tokens too.")

edited("train_bpe", "runs_dry", old="        if not counts:\n            break\n", new="", says="ValueError",
       why="When no pair is left it asks for the commonest of none; stop there instead.")

edited("train_bpe", "old_counts", old="        counts = count_pairs(words)\n",
       new="        counts = counts if merges else count_pairs(words)\n"
           "        counts.pop(pair if merges else None, None)\n",
       says="Count again after every merge",
       why="It counts once, at the beginning, and takes the pairs from that list.")

# ---- encode ----

edited("encode", "id_is_256_plus_rank", old="ids += [vocab[token] for token in tokens]",
       new="ids += [token[0] if len(token) == 1 else 256 + [a + b for a, b in merges].index(token)\n"
           "                for token in tokens]",
       says="Ids come from vocab", why="It takes the byte, or 256 + rank, for the id. Look every token up in vocab.")

edited("encode", "leftmost_first", old="min(present, key=rank.__getitem__)", new="present[0]",
       says="the one that was learned first",
       why="It merges the leftmost pair that it knows, not the one that was learned first.")

edited("encode", "last_learned_first", old="min(present, key=rank.__getitem__)",
       new="max(present, key=rank.__getitem__)",
       says="the one that was learned first", why="It merges the pair that was learned last; the first goes first.")

edited("encode", "never_cuts", old="for piece in split(text):", new="for piece in [text]:",
       says="merge inside each piece only", why="It does not cut the text with split, so merges reach across pieces.")

edited("encode", "stumbles_over_missing_bytes", old=" if bytes([byte]) in vocab", new="", says="KeyError",
       why="It looks up a byte that vocab has no token for; such bytes are left out.")


edited("encode", "one_merge_a_piece", old="tokens = merge_pair(tokens, first, first[0] + first[1])\n",
       new="tokens = merge_pair(tokens, first, first[0] + first[1])\n            break\n",
       says="repeat until no pair",
       why="It merges one pair in each piece and stops; go on until no neighbouring pair is in merges.")


@wrong("encode", says="not the leftmost or longest")
def longest_token_first(text, merges, vocab):
    """It takes the longest token that fits, from left to right; BPE replays its merges instead."""
    from llmcourse.text.pattern import split

    ids = []
    for piece in split(text):
        raw = piece.encode()
        while raw:
            size = max((n for n in range(1, len(raw) + 1) if raw[:n] in vocab), default=0)
            if size:
                ids.append(vocab[raw[:size]])
            raw = raw[size or 1 :]
    return ids


# ---- decode ----

edited("decode", "ignores_broken_bytes", old='in ids).decode("utf-8", errors="replace")',
       new='in ids).decode("utf-8", errors="ignore")',
       says="Bytes that are no UTF-8", why="It leaves broken bytes out; they must show, as U+FFFD.")


@wrong("decode", says="Join the bytes of all tokens first")
def each_token_alone(ids, vocab):
    """It decodes every token by itself, so a character that is spread over two tokens is broken."""
    bytes_of = {token_id: token for token, token_id in vocab.items()}
    return "".join(bytes_of[token_id].decode("utf-8", errors="replace") for token_id in ids)


@wrong("decode", says="one byte, one letter")
def one_letter_a_byte(ids, vocab):
    """It makes one byte, one letter (Latin-1); in UTF-8 a letter may take up to four."""
    bytes_of = {token_id: token for token, token_id in vocab.items()}
    return b"".join(bytes_of[token_id] for token_id in ids).decode("latin-1")


@wrong("decode", says="An id is looked up in vocab")
def place_for_id(ids, vocab):
    """It takes an id for a place in the vocabulary; look up which token has that id."""
    tokens = list(vocab)
    return b"".join(tokens[token_id % len(tokens)] for token_id in ids).decode("utf-8", errors="replace")


@wrong("decode", says="do not skip the id")
def skips_unknown_ids(ids, vocab):
    """It skips ids that it does not know, and the mistake goes unseen."""
    bytes_of = {token_id: token for token, token_id in vocab.items()}
    return b"".join(bytes_of.get(token_id, b"") for token_id in ids).decode("utf-8", errors="replace")


# ---- StreamDecoder ----

edited("StreamDecoder", "forgets_the_rest", old='return self._waiting.decode(b"", final=True)', new='return ""',
       says="finish shows an unfinished character",
       why="finish returns nothing, so an unfinished character is lost without a trace.")

edited("StreamDecoder", "drops_broken_bytes", old='("replace")', new='("ignore")',
       says="finish shows an unfinished character", why="It leaves broken bytes out; they must show, as U+FFFD.")


@wrong("StreamDecoder", says="Bytes of an unfinished character wait")
class ShowsHalfCharacters:
    """It decodes every token by itself, so half a character is shown as U+FFFD."""

    def __init__(self, vocab):
        self.bytes_of = {token_id: token for token, token_id in vocab.items()}

    def push(self, id):
        return self.bytes_of[id].decode("utf-8", errors="replace")

    def finish(self):
        return ""


@wrong("StreamDecoder", says="nothing that is a whole character waits")
class ShowsAllAtTheEnd:
    """It keeps everything until finish: nothing streams."""

    def __init__(self, vocab):
        self.bytes_of = {token_id: token for token, token_id in vocab.items()}
        self.raw = b""

    def push(self, id):
        self.raw += self.bytes_of[id]
        return ""

    def finish(self):
        return self.raw.decode("utf-8", errors="replace")


@wrong("StreamDecoder", says="nothing twice")
class RepeatsTheText:
    """Each push returns the whole text so far, not only what is new."""

    def __init__(self, vocab):
        self.bytes_of = {token_id: token for token, token_id in vocab.items()}
        self.raw = b""

    def push(self, id):
        self.raw += self.bytes_of[id]
        return self.raw.decode("utf-8", errors="ignore")

    def finish(self):
        return ""


@wrong("StreamDecoder", says="show the one, keep the other")
class WaitsForTheWholeToken:
    """It shows nothing until all that waits is complete, also when a character ends and the next one begins."""

    def __init__(self, vocab):
        self.bytes_of = {token_id: token for token, token_id in vocab.items()}
        self.raw = b""

    def push(self, id):
        self.raw += self.bytes_of[id]
        try:
            text = self.raw.decode("utf-8")
        except UnicodeDecodeError:
            return ""
        self.raw = b""
        return text

    def finish(self):
        return self.raw.decode("utf-8", errors="replace")


@wrong("StreamDecoder", says="must not mix")
class SharesItsRest:
    """The bytes that wait belong to the class, so two answers that stream at once mix."""

    raw = bytearray()

    def __init__(self, vocab):
        self.bytes_of = {token_id: token for token, token_id in vocab.items()}

    def push(self, id):
        self.raw.extend(self.bytes_of[id])
        try:
            text, rest = self.raw.decode("utf-8"), b""
        except UnicodeDecodeError as error:
            text, rest = self.raw[: error.start].decode("utf-8"), self.raw[error.start :]
            if error.reason != "unexpected end of data":
                text, rest = self.raw.decode("utf-8", errors="replace"), b""
        self.raw[:] = rest
        return text

    def finish(self):
        text = self.raw.decode("utf-8", errors="replace")
        self.raw.clear()
        return text


@wrong("count_pairs", says="from the end of one word into the next")
def one_long_list(words):
    """It joins all words into one list before counting, so it counts pairs from the end of one word into the next."""
    ids = [one for word, times in words for _ in range(times) for one in word]
    return dict(Counter(zip(ids, ids[1:])))


@wrong("count_pairs", says="Begin anew with every word")
def remembers_the_word_before(words):
    """It pairs the last id of a word with the first of the next one. Begin anew with every word."""
    counts, before = {}, None
    for ids, times in words:
        for one in ids:
            if before is not None:
                counts[before, one] = counts.get((before, one), 0) + times
            before = one
    return counts
