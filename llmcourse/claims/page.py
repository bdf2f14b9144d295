"""docs/claims.md, written from the ledger: `python -m llmcourse.claims.page`."""

from __future__ import annotations

from pathlib import Path

from .ledger import Claim, claims

FILE = Path(__file__).resolve().parents[2] / "docs" / "claims.md"

HEAD = """# The article, and its statements

The course grew out of a popular article, "How LLM Inference Works". It explains a lot in a few pages, and like every short
text it rounds, simplifies, and now and then is wrong. So the course takes each of its statements that can be tested, writes
down first what would have to come out, and then measures it: in the lesson that explains it, and on your machine with
`llmcourse claims` (or `llmcourse claims C13` for one; [cli.md](cli.md) has the fields).

A verdict is one of three: *holds*, *holds with a correction*, *does not hold here*. A bound was chosen before the measurement,
for the reason that stands beside it, and each statement has been shown an engine or a measurement for which it must fail:
an engine that only sleeps, a table that is all one number (`tests/claims/`). Verdicts are not written here, since machines
differ: a lesson shows what came out on the machine that built its page.

(This page is written from `llmcourse/claims/`. After a change there: `python -m llmcourse.claims.page`.)
"""


def page() -> str:
    """The whole page as Markdown."""
    return HEAD + "".join(_section(one) for one in claims())


def _section(one: Claim) -> str:
    rows = {"expected": one.expected, "this bound, because": one.because, "measured": one.how, "lesson": ", ".join(one.lessons)}
    return f"\n## {one.id}\n\n**{one.statement}.**\n\n" + "\n".join(f"- {name}: {text}" for name, text in rows.items()) + "\n"


if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
