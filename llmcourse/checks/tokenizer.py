"""Probes of lab 01: text becomes numbers."""

from __future__ import annotations

from llmcourse.checks import exercise, probe, raises

from .tokenizer_inputs import ENGLISH, HINTS, REAL_MERGES, REAL_VOCAB, cut, learned, streamed, with_ids

OWN_WORK = ("llmcourse.text.bpe", "llmcourse.text.tokenizer", "llmcourse.text.stream",
            "tokenizers", "transformers", "tiktoken")

for name in ("count_pairs", "merge_pair", "train_bpe", "encode", "decode", "StreamDecoder"):
    exercise(name, hints=HINTS[name], forbids=OWN_WORK)

@probe("count_pairs",
       hint="Every two neighbours are a pair: the word 1 2 3 has (1, 2) and (2, 3). Their order matters.")
def pairs_of_neighbours(answer, rng):
    return dict(answer.count_pairs([(rng.ints(rng.integers(6, 12), 0, 4), 1)]))

@probe("count_pairs", points=2, hint="A word that occurs `times` times adds `times` to each of its pairs, not 1.")
def words_weigh_their_times(answer, rng):
    return dict(answer.count_pairs([(rng.ints(5, 0, 3), rng.integers(2, 30)) for _ in range(4)]))

@probe("count_pairs", hint="Count places, overlapping ones too: 1 1 1 has the pair (1, 1) twice.")
def overlapping_places_count(answer, rng):
    return dict(answer.count_pairs([([7] * rng.integers(3, 7), 1), ([7, 7, 2, 7, 7], 2)]))

@probe("count_pairs", hidden=True, hint="No pair reaches from the end of one word into the next.")
def words_stay_apart(answer, rng):
    return dict(answer.count_pairs([([i, 50 + i], rng.integers(1, 5)) for i in range(rng.integers(3, 8))]))

@probe("count_pairs", hidden=True,
       hint="A word of one id has no pair, and no words have none: return an empty dict, no zeros.")
def words_without_pairs(answer, rng):
    return [dict(answer.count_pairs(words)) for words in ([], [([rng.integers(0, 256)], 3)], [([], 2)])]

@probe("merge_pair", hint="Each place where the pair stands becomes new_id; everything else stays, in its order.")
def every_place_becomes_the_new_id(answer, rng):
    a, b = rng.sample(range(5), 2)
    return answer.merge_pair([a, b, *rng.ints(20, 0, 5), a, b], (a, b), 256)

@probe("merge_pair", points=2,
       hint="After a merge, go on behind both of its members: 1 1 1 holds the pair (1, 1) once, at its start.")
def a_member_is_used_once(answer, rng):
    return [answer.merge_pair([1] * n, (1, 1), 9) for n in rng.shuffled(range(1, 7))]

@probe("merge_pair", hint="The pair is ordered: (1, 2) is not (2, 1).")
def order_matters(answer, rng):
    a, b = rng.sample(range(100), 2)
    return answer.merge_pair([b, a, b, b, a, a, b, a], (a, b), 256)

@probe("merge_pair", hidden=True, hint="The list that came in must stay as it was: build a new one.")
def merging_leaves_the_input(answer, rng):
    ids = [*rng.ints(9, 0, 2), 0, 1]
    return [answer.merge_pair(ids, (0, 1), 256), ids]

@probe("merge_pair", hidden=True, hint="The last id has no right neighbour; it must still arrive in the result.")
def last_id_survives(answer, rng):
    a, b, c = rng.sample(range(100), 3)
    return [answer.merge_pair(ids, (a, b), 256) for ids in ([a, b, c], [c, a], [a], [], [c, b, a, b])]

@probe("merge_pair", hidden=True,
       hint="Compare with ==, and ask nothing else of the items: `encode` merges bytes objects with it.")
def merges_bytes_too(answer, rng):
    return answer.merge_pair([b"n", b"a", b"n", b"a"], (b"n", b"a"), b"na")

@probe("train_bpe", hint="The first merge is the commonest pair, written as two bytes objects.")
def commonest_pair_first(answer, rng):
    a, b, c = rng.sample("bcdfghklm", 3)
    return answer.train_bpe(f"{a}{b} {c}{a} {a}{b}{c} {c}{a}{b}", 257)

@probe("train_bpe", points=2, hint="Count again after every merge: it takes some pairs away and makes new ones.")
def counts_after_every_merge(answer, rng):
    return answer.train_bpe(" ".join(rng.words(30)), 256 + rng.integers(8, 14))

@probe("train_bpe", points=2, hint="Of equal counts the smallest pair of ids wins, wherever it stands in the text.")
def smallest_of_equal_pairs(answer, rng):
    letters = sorted(rng.sample("bcdfghjklmnpqrstvwxz", 8), reverse=True)
    return answer.train_bpe("".join(letters), 256 + 4)

@probe("train_bpe", hint="vocab_size counts all tokens, the 256 bytes included; so 256 gives no merge at all.")
def vocab_size_counts_the_bytes(answer, rng):
    text = " ".join(rng.words(40))
    return [len(answer.train_bpe(text, 256 + n)) for n in (0, 1, rng.integers(3, 9))]

@probe("train_bpe", hint="When no pair is left, every piece is one token: stop there, with fewer merges.")
def stops_when_no_pair_is_left(answer, rng):
    word = rng.text(rng.integers(4, 8), "abcdefgh")
    return [answer.train_bpe(f"{word} {word}", 400), answer.train_bpe("", 300)]

@probe("train_bpe", hidden=True, points=2,
       hint="Cut the text with split first: pairs are counted inside pieces, never across.")
def pieces_stay_apart(answer, rng):
    a, b = rng.sample("bcdfgh", 2)
    return answer.train_bpe(f"{a} {b}! " * 9 + f"{a}{b}", 264)

@probe("train_bpe", hidden=True,
       hint="Train on bytes, text.encode(), not on letters: é is two bytes, and they merge like any others.")
def trains_on_bytes(answer, rng):
    return answer.train_bpe(rng.text(40, "éßЖ日🙂 "), 268)

@probe("train_bpe", hidden=True,
       hint="Ties go by ids, not by bytes: a learned token has an id of 256 or more, so it comes after every byte.")
def ties_go_by_id(answer, rng):
    a, b, c = sorted(rng.sample("abcdefghi", 3))
    y, z = rng.sample("rstuvwxyz", 2)
    return answer.train_bpe(f"{a}{b} {a}{b}{c} {a}{b}{c} {y}{z} {y}{z}", 256 + 5)

@probe("train_bpe", hidden=True, hint="Fewer than 256 tokens cannot hold the bytes: raise ValueError.")
def too_few_tokens(answer, rng):
    return [raises(ValueError, answer.train_bpe, "some text", rng.integers(1, 256)), answer.train_bpe("abab", 257)]

@probe("train_bpe", hidden=True, points=2, hint="Many merges in a row must stay right: counts, ties and ids together.")
def a_longer_training(answer, rng):
    return answer.train_bpe(ENGLISH + " " + " ".join(rng.words(60)), 256 + 60)

@probe("encode",
       hint="Ids come from vocab, by bytes. An id says nothing about a place: it is neither the byte nor 256 + rank.")
def ids_come_from_vocab(answer, rng):
    merges = [(b"t", b"h"), (b"th", b"e")]
    return answer.encode("the thé " + "".join(rng.words(2)), merges, with_ids(rng, merges))

@probe("encode", points=2,
       hint="Of the pairs that stand there now, merge the one that was learned first; not the leftmost or longest.")
def first_learned_first_merged(answer, rng):
    a, b, c, d = rng.sample("bcdfghklm", 4)
    A, B, C, D = (letter.encode() for letter in (a, b, c, d))
    merges = [(B, C), (A, B), (A + B, C), (C, D), (A + B, C + D)]
    texts = (a + b + c + d, a + b + a + b + c, b + c + d)
    return [answer.encode(text, merges, with_ids(rng, merges)) for text in texts]

@probe("encode", hint="Cut the text with split first, and merge inside each piece only.")
def merges_stay_inside_pieces(answer, rng):
    merges = [(b"s", b" "), (b"a", b"!"), (b"1", b"2"), (b" ", b"c")]
    vocab = with_ids(rng, merges)
    return [answer.encode(text, merges, vocab) for text in ("cats cats", "a! a!", "12 c")]

@probe("encode", points=2,
       hint="This is the real vocabulary (its first 2,000 merges): repeat until no pair of neighbours is in merges.")
def real_vocabulary_english(answer, rng):
    words = ENGLISH.split()
    return answer.encode(" ".join(rng.shuffled(words)), REAL_MERGES, REAL_VOCAB)

@probe("encode", hidden=True, points=2,
       hint="Digits, code, other scripts and emoji go the same way: bytes, merges, vocab.")
def real_vocabulary_mixed(answer, rng):
    code = "\n    for i in range(1024):\n        print(f'{i:3d}')  # naïve café\n"
    return answer.encode(code + rng.text(120), REAL_MERGES, REAL_VOCAB)

@probe("encode", hidden=True,
       hint="A merge applies to every place in the piece where its pair stands, from left to right.")
def long_runs(answer, rng):
    merges = [(b"a", b"a"), (b"aa", b"aa"), (b"aa", b"a")]
    vocab = with_ids(rng, merges)
    return [answer.encode("a" * n, merges, vocab) for n in range(1, 12)]

@probe("encode", hidden=True, hint="No text, no ids; without merges, one id for each byte.")
def nothing_to_merge(answer, rng):
    vocab = with_ids(rng)
    return [answer.encode("", [(b"a", b"b")], vocab), answer.encode(rng.text(12), [], vocab)]

@probe("encode", hidden=True, hint="A byte that vocab has no token for is left out, before the merging.")
def missing_bytes_are_left_out(answer, rng):
    merges = [(b"a", b"b"), (b"c", b"d")]
    vocab = {token: i for token, i in with_ids(rng, merges).items() if token not in (b"\x04", b"\x06")}
    return answer.encode("a\x04b c\x06\x06d \x04", merges, vocab)

@probe("encode", hidden=True, points=2,
       hint="New words are cut by the merges of old ones; the same merges, the same order.")
def words_never_seen(answer, rng):
    merges = learned(rng, 60, 40)
    return answer.encode(" ".join(rng.words(20)), merges, with_ids(rng, merges))

@probe("decode", points=2,
       hint="Join the bytes of all tokens first, then decode them once: a character may be spread over several tokens.")
def characters_over_several_tokens(answer, rng):
    tokens = cut(rng, ("é日🙂" + rng.text(20)).encode())
    vocab = with_ids(rng, extra=tokens)
    return answer.decode([vocab[token] for token in tokens], vocab)

@probe("decode", hint="An id is looked up in vocab; its number says nothing about its bytes.")
def ids_are_looked_up(answer, rng):
    vocab = with_ids(rng, [(b"c", b"a"), (b"ca", b"t")])
    return answer.decode([vocab[token] for token in (b"cat", b" ", b"ca", b"t", b"c")], vocab)

@probe("decode", hint="Bytes that are no UTF-8 become \ufffd, one or more: decode with errors=\"replace\".")
def broken_bytes(answer, rng):
    vocab = with_ids(rng)
    bad = rng.shuffled([0xFF, 0x80, 0xC3])
    return answer.decode([vocab[bytes([byte])] for byte in (0x41, bad[0], 0x42, bad[1], 0x43, bad[2])], vocab)

@probe("decode", hidden=True, hint="No ids give the empty text.")
def nothing_to_decode(answer, rng):
    return answer.decode([], with_ids(rng))

@probe("decode", hidden=True, hint="What was encoded comes back, character by character.")
def what_went_in_comes_out(answer, rng):
    text = rng.text(80)
    vocab = with_ids(rng)
    return answer.decode([vocab[bytes([byte])] for byte in text.encode()], vocab)

@probe("decode", hidden=True,
       hint="An id that is not in vocab is an error of the caller: let the KeyError out, do not skip the id.")
def unknown_id(answer, rng):
    vocab = {b"a": 3, b"b": 5}
    return [raises(KeyError, answer.decode, [3, rng.integers(6, 99), 5], vocab), answer.decode([3, 5], vocab)]

@probe("StreamDecoder", points=2,
       hint="Bytes of an unfinished character wait: push returns \"\" until its last byte has come.")
def half_a_character_waits(answer, rng):
    text = "".join(rng.shuffled("a🙂é日"))
    vocab = with_ids(rng)
    return streamed(answer, vocab, [vocab[bytes([byte])] for byte in text.encode()])

@probe("StreamDecoder", hint="What is certain is shown at once: nothing that is a whole character waits.")
def whole_characters_at_once(answer, rng):
    words = [word.encode() for word in rng.words(4)]
    vocab = with_ids(rng, extra=words)
    return streamed(answer, vocab, [vocab[word] for word in words])

@probe("StreamDecoder", points=2,
       hint="All that push and finish return, joined, is the text: nothing lost, nothing twice.")
def pieces_join_to_the_text(answer, rng):
    tokens = cut(rng, rng.text(40).encode())
    vocab = with_ids(rng, extra=tokens)
    return "".join(streamed(answer, vocab, [vocab[token] for token in tokens]))

@probe("StreamDecoder", hint="At the end nothing more will come: finish shows an unfinished character as \ufffd.")
def finish_shows_the_rest(answer, rng):
    vocab = with_ids(rng)
    return streamed(answer, vocab, [vocab[bytes([byte])] for byte in b"ab\xf0\x9f\x99"])

@probe("StreamDecoder", hidden=True, points=2,
       hint="A token may end one character and begin the next: show the one, keep the other.")
def tokens_across_characters(answer, rng):
    raw = "".join(rng.shuffled("日本語🙂👩é")).encode()
    tokens = [raw[i : i + 2] for i in range(0, len(raw), 2)]
    vocab = with_ids(rng, extra=tokens)
    return streamed(answer, vocab, [vocab[token] for token in tokens])

@probe("StreamDecoder", hint="Every decoder keeps its own rest: two answers that stream at once must not mix.")
def two_decoders_at_once(answer, rng):
    vocab = with_ids(rng)
    one, two = answer.StreamDecoder(vocab), answer.StreamDecoder(vocab)
    ids = [[vocab[bytes([byte])] for byte in letter.encode()] for letter in rng.sample("日語本한", 2)]
    return [decoder.push(ids[i][n]) for n in range(3) for i, decoder in enumerate((one, two))]

@probe("StreamDecoder", hidden=True,
       hint="Bytes that can never become a character show as \ufffd, and what follows is still right.")
def bytes_that_are_no_text(answer, rng):
    vocab = with_ids(rng)
    raw = b"ok \xff" + rng.choice([b"\xe6A", b"\xf0\x9f(", b"\x80\x80"]) + b" fine"
    return "".join(streamed(answer, vocab, [vocab[bytes([byte])] for byte in raw]))

@probe("StreamDecoder", hidden=True, hint="Without a rest, finish returns \"\"; also when nothing was pushed.")
def nothing_is_left(answer, rng):
    vocab = with_ids(rng)
    return [streamed(answer, vocab, []), streamed(answer, vocab, [vocab[b"x"], vocab[b"y"]])]
