"""Text to token ids and back: pre-tokenization, byte-level BPE, chat templates, streaming. No torch down here."""
