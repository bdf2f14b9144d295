# %%
def count_pairs(words):
    counts = {}
    for ids, times in words:
        for pair in zip(ids, ids[1:]):
            counts[pair] = counts.get(pair, 0) + times
    return counts

# %%
def merge_pair(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged

# %%
def replaced_everywhere(items, pair, new):
    joined = []
    for item in items:
        if joined and (joined[-1], item) == pair and joined[-1] is not None:
            joined[-1:] = [None, new]
        else:
            joined.append(item)
    return [item for item in joined if item is not None]


def train_bpe(text, vocab_size):
    from llmcourse.text.pattern import split

    if vocab_size < 256:
        raise ValueError("there are 256 bytes already")
    words = [list(piece.encode()) for piece in split(text)]
    token_bytes, merges = [bytes([byte]) for byte in range(256)], []
    while len(token_bytes) < vocab_size:
        counts = {}
        for word in words:
            for pair in zip(word, word[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        if not counts:
            break
        pair = min(counts, key=lambda one: (-counts[one], one))
        merges.append((token_bytes[pair[0]], token_bytes[pair[1]]))
        words = [replaced_everywhere(word, pair, len(token_bytes)) for word in words]
        token_bytes.append(b"".join(merges[-1]))
    return merges

# %%
def encode(text, merges, vocab):
    from llmcourse.text.pattern import split

    rank, ids = {pair: place for place, pair in enumerate(merges)}, []
    for piece in split(text):
        tokens = [bytes([byte]) for byte in piece.encode() if bytes([byte]) in vocab]
        while True:
            known = [pair for pair in zip(tokens, tokens[1:]) if pair in rank]
            if not known:
                break
            pair = min(known, key=rank.get)
            tokens = replaced_everywhere(tokens, pair, b"".join(pair))
        ids += [vocab[token] for token in tokens]
    return ids

# %%
def decode(ids, vocab):
    bytes_of = {number: token for token, number in vocab.items()}
    return b"".join(bytes_of[number] for number in ids).decode("utf-8", "replace")

# %%
import codecs


class StreamDecoder:
    def __init__(self, vocab):
        self.bytes_of = {number: token for token, number in vocab.items()}
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, number):
        return self.decoder.decode(self.bytes_of[number])

    def finish(self):
        return self.decoder.decode(b"", final=True)
