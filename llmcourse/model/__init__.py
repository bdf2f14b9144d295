"""Models: where they come from (hub, download), what they are (config), and their numbers (gguf, weights, llama)."""
