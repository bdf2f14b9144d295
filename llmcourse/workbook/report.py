"""What a learner reads after a check: plain text, and HTML that needs neither scripts nor styles of a page."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape

from llmcourse.checks.run import NOT_RUN, NOT_WRITTEN, Verdict

from .examine import Examined

PASSED_ALL = "Visible and hidden checks passed."
PASSED = "Visible checks passed. Grading repeats them with new inputs and adds hidden ones."
MAX_PRINTED_LINES = 10


@dataclass(frozen=True)
class Report:
    """Lines of (mark, text, details); shown as text in a terminal and as a small table in a notebook."""

    title: str
    lines: tuple[tuple[str, str, tuple[str, ...]], ...]
    end: str = ""

    def __str__(self) -> str:
        rows = [self.title]
        for mark, text, details in self.lines:
            rows.append(f"  {mark} {text}")
            rows += [f"      {detail}" for detail in details]
        return "\n".join([*rows, self.end] if self.end else rows)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/plain": str(self), "text/html": self.html()}

    def html(self) -> str:
        """The same as a table; colours are left to the page."""
        rows = []
        for mark, text, details in self.lines:
            more = "".join(f"<br><span style='margin-left:1em'>{escape(d)}</span>" for d in details)
            rows.append(f"<tr><td style='vertical-align:top'>{mark}</td>"
                        f"<td style='text-align:left'>{escape(text)}{more}</td></tr>")
        end = f"<p>{escape(self.end)}</p>" if self.end else ""
        table = f"<table>{''.join(rows)}</table>" if rows else ""
        return f"<div><b>{escape(self.title)}</b>{table}{end}</div>"


def report(examined: Examined, *, hidden: bool = False) -> Report:
    """One exercise's result in words. hidden: its hidden probes were run too."""
    name = f"{examined.lesson}.{examined.exercise}"
    if examined.unwritten:
        return Report(f"{name}: not written yet", (), f"{examined.max_points:g} points wait here.")
    if examined.broken:
        return Report(f"{name}: your cell does not run", (("✗", examined.broken, ()),),
                      f"{examined.max_points:g} points wait here; nothing of it could be checked.")
    title = f"{name}: {examined.points:g} of {examined.max_points:g} points"
    lines = [("→", sentence, ()) for sentence in _diagnoses(examined)]
    lines += [_line(v, _shows_hint(examined, v)) for v in examined.verdicts]
    if examined.printed and not examined.complete:
        shown = examined.printed.splitlines()
        cut = [f"… ({len(shown) - MAX_PRINTED_LINES} more lines)"] if len(shown) > MAX_PRINTED_LINES else []
        lines.append((" ", "Your code printed:", (*shown[:MAX_PRINTED_LINES], *cut)))
    return Report(title, tuple(lines), (PASSED_ALL if hidden else PASSED) if examined.complete else "")


def _diagnoses(examined: Examined) -> list[str]:
    """What explains the failures, before they are listed."""
    known = [f"This looks like a known mistake: {examined.mistake}"] if examined.mistake else []
    return [*filter(None, [examined.calls]), *known]


def _shows_hint(examined: Examined, verdict: Verdict) -> bool:
    """Where the failures are explained, other hints would send the learner to code that is right.

    Of a known mistake's hints the one that belongs to it stays, unless its own sentence says the same.
    """
    if examined.mistake:
        return examined.way_out in verdict.hint and examined.way_out not in examined.mistake
    return not examined.calls


def _line(verdict: Verdict, with_hint: bool) -> tuple[str, str, tuple[str, ...]]:
    points = f"({verdict.probe.points:g} {'point' if verdict.probe.points == 1 else 'points'})"
    if verdict.ok:
        return "✓", f"{verdict.probe.title} {points}", ()
    if verdict.reason == NOT_RUN:
        return "·", f"{verdict.probe.title} {points}: {verdict.detail}", ()
    reason = "not written yet" if verdict.reason == NOT_WRITTEN else verdict.reason
    hint = (f"Hint: {verdict.hint}",) if verdict.hint and with_hint else ()
    return "✗", f"{verdict.probe.title} {points}: {reason}: {verdict.detail}", hint


def show(content: object) -> None:
    """Show something with a mimebundle in a notebook, and as text elsewhere."""
    if in_notebook():
        from IPython.display import display

        display(content)
    else:
        print(content)


def in_notebook() -> bool:
    """Whether this code runs in a kernel (JupyterLab, classic notebook, VS Code, nbclient)."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and hasattr(shell, "kernel")
