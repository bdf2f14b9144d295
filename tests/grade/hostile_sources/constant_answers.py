# {"full": "none", "status": "ok"}
# %% wrong="all"
# %%
def train_bpe(text, vocab_size):
    raise ValueError("there are 256 bytes already")
# %%
class StreamDecoder:
    def __init__(self, vocab):
        self.n = 0

    def push(self, number):
        return ""

    def finish(self):
        return ""
