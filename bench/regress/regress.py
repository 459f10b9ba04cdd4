"""Counts the instructions of fixed workloads under callgrind and compares them with the committed baseline.

Times on a busy machine do not show a change of a few percent. Instruction counts are the same in every run. One
thread, the baseline instruction set, one hash seed and only the plain copy functions of the C
library make them independent of machine and chance. A workload fails above +1 %. exceptions.json
lists workloads that may take more, with the reason.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness.callgrind import counted  # noqa: E402

BASELINE = HERE / "baseline.json"
EXCEPTIONS = HERE / "exceptions.json"
PROGRAM = HERE.parent.parent / "build" / "bench" / "tensorhash-regress"
MOST = 0.01  # the allowed increase, unless exceptions.json names the workload
SAME = 0.001  # two runs of one program must differ by less

ENVIRONMENT = {
    "TENSORHASH_ISA": "x86-64-v2",
    "TENSORHASH_NUM_THREADS": "1",
    # The seed decides which keys share a bucket, which changes the work a little.
    "TENSORHASH_SEED": "1",
    # memcpy and memset depend on the processor and its cache sizes. These settings fix their
    # choice.
    "GLIBC_TUNABLES": ":".join(
        (
            "glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-ERMS,-FSRM",
            "glibc.cpu.x86_non_temporal_threshold=0x4000000",
            "glibc.cpu.x86_rep_movsb_threshold=0x4000000",
            "glibc.cpu.x86_rep_stosb_threshold=0x4000000",
        )
    ),
}


def fail(sentence: str) -> NoReturn:
    print(f"\nerror: {sentence}", file=sys.stderr)
    sys.exit(1)


def count() -> tuple[str, dict[str, int]]:
    """The compiler's name, and the instruction count of each workload."""
    try:
        (compiler, isa), counts = counted(PROGRAM, ENVIRONMENT, headers=2)
    except RuntimeError as error:
        fail(str(error))
    if isa not in ("isa x86-64-v2", "isa generic"):
        fail(f"TENSORHASH_ISA: expected the level x86-64-v2 or generic, got {isa}")
    return f"{compiler.removeprefix('compiler ')} {platform.machine()}", counts


def update(baseline: dict[str, dict[str, int]]) -> None:
    compiler, counts = count()
    for name, again in count()[1].items():
        if abs(again - counts[name]) > SAME * counts[name]:
            fail(
                f"{name}: expected equal counts in two runs, got {counts[name]:,} and {again:,}; not written"
            )
    baseline[compiler] = counts
    BASELINE.write_text(json.dumps(baseline, indent=2, sort_keys=False) + "\n")
    print(f"{BASELINE.name}: {len(counts)} workloads written for {compiler}")


def read_exceptions(known: set[str]) -> dict[str, float]:
    """The allowed increase of each workload in exceptions.json. Each entry has a reason."""
    allowed = {}
    for name, entry in json.loads(EXCEPTIONS.read_text()).items():
        if name not in known:
            fail(f"{EXCEPTIONS.name}: there is no workload {name!r}")
        most, reason = entry.get("most"), entry.get("reason")
        if not isinstance(most, float) or not MOST < most < 1:
            fail(f'{EXCEPTIONS.name}: {name}: "most": expected {MOST} < most < 1, got {most!r}')
        if not isinstance(reason, str) or not reason.strip():
            fail(f'{EXCEPTIONS.name}: {name}: "reason": expected a sentence, got {reason!r}')
        allowed[name] = most
    return allowed


def compare(baseline: dict[str, dict[str, int]]) -> None:
    compiler, counts = count()
    if compiler not in baseline:
        known = ", ".join(baseline) or "none"
        fail(
            f"no baseline for {compiler} (known: {known}). To make one, check out a commit that is known to be good "
            "and run tools/bench-regress --update there. Then run this again."
        )
    expected = baseline[compiler]
    allowed = read_exceptions(set(expected))
    slower = []
    print(f"{'workload':24} {'expected':>14} {'got':>14} {'change':>8}    ({compiler})")
    for name, got in counts.items():
        if name not in expected:
            fail(f"{name}: not in the baseline; tools/bench-regress --update adds it")
        change = got / expected[name] - 1
        most = allowed.get(name, MOST)
        note = f"    (exception: {most:.0%})" if name in allowed else ""
        print(f"{name:24} {expected[name]:>14,} {got:>14,} {change:>+8.2%}{note}")
        if got - expected[name] > most * expected[name]:
            slower.append(
                f"{name}: expected {expected[name]:,} instructions, got {got:,} ({change:+.2%}), "
                f"{most:.0%} more are allowed"
            )
    gone = sorted(set(expected) - set(counts))
    if gone:
        fail(f"in the baseline but not run: {', '.join(gone)}; tools/bench-regress --update")
    if slower:
        fail("too far over the baseline:\n  " + "\n  ".join(slower))
    print(
        f"all {len(counts)} workloads are within {MOST:.0%} of the baseline, or within what "
        f"{EXCEPTIONS.name} allows {len(allowed)} of them"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write a new baseline")
    arguments = parser.parse_args()
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    (update if arguments.update else compare)(baseline)


if __name__ == "__main__":
    main()
