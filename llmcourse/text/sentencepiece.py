"""SentencePiece-style BPE with byte fallback: Llama 2, Mistral 7B, TinyLlama.

Here a merge joins characters, not bytes. A space is written "▁" (U+2581), which is a character like any other, so that
" the" is the token "▁the". A character that the vocabulary lacks falls back to the tokens of its UTF-8 bytes, written
"<0xE4>". So nothing is lost, as in byte-level BPE, and rare characters cost as many tokens as they have bytes.

Source: Kudo and Richardson 2018, "SentencePiece: A simple and language independent subword tokenizer".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from llmcourse.errors import TokenizerError
from llmcourse.text.bpe import BPE, N_BYTES

SPACE = "\u2581"
BYTE_NAMES = tuple(f"<0x{byte:02X}>" for byte in range(N_BYTES))
_BYTE_NAME = re.compile(r"<0x[0-9A-F]{2}>")


class SentencePieceBPE(BPE):
    """A vocabulary of texts and its merges: characters to ids and back.

    vocab: token as the file writes it ("▁the", "<0xE4>") → id; the tokens of all 256 bytes among them.
    merges: pairs of tokens, those learned first come first.
    ignore_merges: a piece that is itself a token becomes that token, whatever the merges say.
    Raises TokenizerError when a byte has no token, or a merge names a token that the vocabulary lacks.
    """

    def __init__(self, vocab: Mapping[str, int], merges: Iterable[tuple[str, str]], *, ignore_merges: bool = False):
        lacking = [name for name in BYTE_NAMES if name not in vocab]
        if lacking:
            raise TokenizerError(f"the vocabulary falls back to bytes and lacks {len(lacking)} of them, such as {lacking[0]}")
        super().__init__({bytes([byte]): vocab[name] for byte, name in enumerate(BYTE_NAMES)}, ())
        self.ignore_merges = ignore_merges
        self._ids = {text: token_id for text, token_id in vocab.items() if not _BYTE_NAME.fullmatch(text)}
        self.bytes_of.update((token_id, self.written(text)) for text, token_id in self._ids.items())
        self.vocab = {token: token_id for token_id, token in self.bytes_of.items()}
        self.vocab.update((self.written(text), token_id) for text, token_id in self._ids.items())
        for rank, (left, right) in enumerate(merges):
            self._add_rule(rank, left, right, vocab)

    def written(self, content: str) -> bytes:
        """The bytes that a token stands for: "▁the" → b" the"."""
        return content.replace(SPACE, " ").encode()

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """Raises TokenizerError: these merges join characters, and whoever asks wants to merge bytes."""
        raise TokenizerError("this vocabulary merges characters (SentencePiece), not bytes; take a model with "
                             "byte-level BPE, such as the default one")

    def encode_piece(self, piece: str) -> list[int]:
        """Ids of one piece: of its characters, or of the bytes of those that have no token; then merged."""
        if self.ignore_merges and piece in self._ids:
            return [self._ids[piece]]
        ids: list[int] = []
        for letter in piece:
            known = self._ids.get(letter)
            ids += [self._byte_ids[byte] for byte in letter.encode()] if known is None else [known]
        return self.merged(ids)
