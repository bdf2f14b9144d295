"""The readable report of one submission, for its student: of hidden probes it shows name and hint only."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from llmcourse.checks.run import NOT_WRITTEN

from .record import write_private
from .isolation import NO_FILTER, UNTRUSTED
from .printable import printable
from .results import OK

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } code { overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; vertical-align: top; }
tr { border-bottom: 1px solid #ddd; } .points { text-align: right; white-space: nowrap; }
.box { border-left: .3rem solid #b35900; background: #fff6ec; padding: .6rem 1rem; margin: 1rem 0; }
.note { color: #555; } .passed { color: #00643c; } .failed { color: #a11212; }
"""


def write_report(file: Path, result: dict) -> None:
    """Write the page: at most 1 MB, for this user only; a reader never sees half of it."""
    write_private(file, page(result))


def page(result: dict) -> str:
    """The whole page as HTML, without scripts or anything from elsewhere."""
    title = f"{result['submission']}: lab {result['lesson'] or '?'}"
    most = "" if result["max"] is None else f" of {result['max']:g}"
    points = f"<strong>{result['score']:g}{most} points</strong>"
    parts = [f"<h1>{_text(title)}</h1>", f"<p>{points} · status: {_text(result['status'])}{_before(result)}</p>"]
    if not result["trusted"]:
        parts.append(f"<div class=box><strong>{_text(UNTRUSTED)}.</strong></div>")
    if result.get("no_filter"):
        parts.append(f"<div class=box>{_text(NO_FILTER)}</div>")
    if result["reason"]:
        parts.append(f"<div class=box><strong>{_text(result['reason'])}</strong></div>")
    parts += _cells(result)
    parts += [
        _exercise(one, [t for t in result["tests"] if t["exercise"] == one["name"]]) for one in result["exercises"]
    ]
    parts.append(_footer(result))
    head = f"<meta charset=utf-8><title>{_text(title)}</title><style>{_STYLE}</style>"
    body = "\n".join(parts)
    return f"<!doctype html>\n<html lang=en><head>{head}</head><body>\n{body}\n</body></html>\n"


def _before(result: dict) -> str:
    old = result["previous"]
    return f" · before: {old['score']:g} points ({_text(old['status'])})" if old else ""


def _cells(result: dict) -> list[str]:
    """What went wrong before any probe ran, failed imports first; then the warnings."""
    parts = []
    if result["problems"]:
        rows = "".join(
            f"<li>{_place(one)}: {_text(one['error'])}: <code>{_text(one['message'])}</code></li>"
            for one in result["problems"]
        )
        parts.append(f"<h2>Cells that did not run</h2><ol>{rows}</ol>")
    if result["warnings"]:
        parts.append("<ul>" + "".join(f"<li>{_text(one)}</li>" for one in result["warnings"]) + "</ul>")
    return parts


def _place(problem: dict) -> str:
    cell = f"cell {problem['cell']}" if problem["cell"] else "the lab's own import cell"
    return cell + (f", line {problem['line']}" if problem["line"] else "")


def _exercise(exercise: dict, tests: list[dict]) -> str:
    head = f"<h2>{_text(exercise['name'])}: {exercise['score']:g} of {exercise['max']:g}</h2>"
    mistake = f"<div class=box>{_text(exercise['mistake'])}</div>" if exercise["mistake"] else ""
    rows = "".join(map(_row, tests))
    columns = "<tr><th>Result<th>What is right<th class=points>Points"
    return f"{head}{mistake}<table><thead>{columns}</thead><tbody>{rows}</tbody></table>"


def _row(test: dict) -> str:
    passed = test["reason"] == OK
    said = {OK: "passed", NOT_WRITTEN: "not written yet"}.get(test["reason"], test["reason"])
    more = "".join(f"<br><span class=note>{_text(test[key])}</span>" for key in ("detail", "hint") if test[key])
    hidden = " <span class=note>(hidden)</span>" if test["hidden"] else ""
    return (
        f"<tr><td class={'passed' if passed else 'failed'}>{'✓' if passed else '✗'} {_text(said)}"
        f"<td>{_text(test['title'])}{hidden}{more}<td class=points>{test['points']:g} of {test['max']:g}</tr>"
    )


def _footer(result: dict) -> str:
    how = f"isolation: {_text(result['isolation'])}, {result['seconds']:.1f} s"
    when = f"Graded {_text(result['graded'])} with llmcourse {_text(result['course_version'])}"
    return f"<p class=note>{when}, {how}. File: {_text(os.path.basename(result['file']))}</p>"


def _text(text: object) -> str:
    return escape(printable(str(text)))
