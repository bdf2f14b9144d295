"""`python -m llmcourse …` is `llmcourse …`."""

from __future__ import annotations

from llmcourse.cli import main

if __name__ == "__main__":
    main()
