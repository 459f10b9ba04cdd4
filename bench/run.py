"""The benchmark: `make bench`, or `python bench/run.py --quick --only PATTERN`; --help has the rest.

Samples go to build/bench, one file per suite. Tables, goals, plots and README's factors are made from
these files.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from types import ModuleType

import suites
from harness import factors, goals, plan, report, store
from harness.case import FULL, QUICK, SMOKE, Scale, chosen
from harness.progress import Progress, clock_text
from harness.runner import Failure, run_suite


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="under three minutes; less precise")
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="run every case on a few rows, only to see that it runs",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="cases with this in the name"
    )
    parser.add_argument(
        "--forget",
        action="store_true",
        help="remove the earlier runs of these cases; without it they count too, as a median. "
        "Nothing can be written before the next run of all cases",
    )
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument(
        "--report", action="store_true", help="measure nothing, use the stored samples"
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="write bench/results.md, the plots and, at the full scale, README's factors",
    )
    given = parser.parse_args()
    if given.write and given.smoke:
        parser.error("--write: not allowed with --smoke, because its numbers mean nothing")
    if given.write and given.forget:
        parser.error("--write: not allowed with --forget, because that would choose among the runs")
    return given


def measure(
    wanted: dict[str, list[str]], modules: dict[str, ModuleType], scale: Scale, report_only: bool
) -> list[Failure]:
    """Runs the cases, suite by suite, and prints each suite's tables when it ends."""
    progress = Progress(sum(map(len, wanted.values())))
    failures: list[Failure] = []
    used: dict[str, float] = {}
    names, begun = list(wanted), time.monotonic()
    for place, (name, cases) in enumerate(wanted.items()):
        if not report_only:
            start = time.monotonic()
            part = plan.haste(start - begun, names[place:], scale)
            failures += run_suite(modules[name], scale, cases, progress, part)
            progress.clear()
            used[name] = time.monotonic() - start
            print(f"{name}: planned {plan.seconds(name, scale):.0f} s, used {used[name]:.0f} s")
        print(*tables_of(modules[name], name, scale), "", sep="\n", flush=True)
    if used:
        print(*plan.summary(used, scale), "", sep="\n")
    return failures


def forget(wanted: dict[str, list[str]], scale: Scale, given: argparse.Namespace) -> None:
    """A run of all cases starts anew. Chosen cases keep their earlier runs, unless told otherwise."""
    for name, cases in wanted.items():
        if not given.only:
            store.start_anew(scale, name)
        elif given.forget:
            store.forget(scale, name, cases)


def may_write(scale: Scale, names: Iterable[str]) -> bool:
    """Whether all runs are still there: a record without some of them would be a choice."""
    forgotten = store.forgotten(scale, names)
    if forgotten:
        print(
            f"--write: earlier runs of {', '.join(forgotten)} were forgotten; expected a run of all "
            "cases since then",
            file=sys.stderr,
        )
    return not forgotten


def tables_of(module: ModuleType, name: str, scale: Scale) -> list[str]:
    """The suite's section; empty if there is no data."""
    order = [case.name for case in module.cases(scale)]
    data = store.load(scale, name).in_order(order)
    return report.section(module, data) if data.samples else []


def write(
    modules: dict[str, ModuleType],
    scale: Scale,
    verdicts: list[goals.Verdict],
    machine: str,
    earlier: str,
) -> None:
    """Writes the record. What was not measured stays as the `earlier` results have it."""
    from harness import plots

    sections = {name: tables_of(module, name, scale) for name, module in modules.items()}
    verdicts = goals.with_earlier(verdicts, earlier)
    sections["goals"] = goals.section(verdicts, scale, machine)
    made = {name: lines for name, lines in sections.items() if lines}
    written = [report.write(made, ["goals", *modules], earlier)]
    written += plots.draw(scale, verdicts, machine)
    if scale.full:
        written.append(factors.write(report.RESULTS.read_text()))
    print("written:", *(path.relative_to(store.ROOT) for path in written), file=sys.stderr)


def main() -> int:
    given = arguments()
    scale = SMOKE if given.smoke else QUICK if given.quick else FULL
    modules = suites.load()
    names = {name: [case.name for case in m.cases(scale)] for name, m in modules.items()}
    wanted = {name: chosen(cases, given.only) for name, cases in names.items()}
    wanted = {name: cases for name, cases in wanted.items() if cases}
    if not wanted:
        print(
            f"--only: expected part of a case's name, got {given.only}; --list prints the names",
            file=sys.stderr,
        )
        return 2
    if given.list:
        print("\n".join(case for cases in wanted.values() for case in cases))
        return 0

    start = time.monotonic()
    if not given.report:
        forget(wanted, scale, given)
    if given.write and not may_write(scale, modules):
        return 2
    failures = measure(wanted, modules, scale, report_only=given.report)
    verdicts = goals.judge({name: store.load(scale, name).recorded() for name in modules})
    machine = store.machine(scale, modules)
    print("\n".join(goals.section(verdicts, scale, machine)))
    if given.write:
        # The record is one run from end to end: a run of all cases keeps nothing of an earlier one.
        anew = not given.only and not given.report
        write(modules, scale, verdicts, machine, "" if anew else report.RESULTS.read_text())
    print(f"took {clock_text(time.monotonic() - start)} minutes", file=sys.stderr)
    for failure in failures:
        print(f"\nFAILED {failure.case}\n{failure.error.rstrip()}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
