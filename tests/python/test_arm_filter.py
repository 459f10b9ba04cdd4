"""tools/test-arm runs every C++ test under qemu except those that it names."""

import fnmatch
import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
TEST = re.compile(r"^(?:TYPED_)?TEST(_F|_P)?\((\w+),\s*(\w+)\)", re.M)


def all_tests():
    for file in sorted((TOP / "tests").rglob("*.cpp")):
        for kind, suite, name in TEST.findall(file.read_text()):
            # With parameters: "Threads/Rule01.name/0".
            yield file.parent.name, f"X/{suite}.{name}/0" if kind == "_P" else f"{suite}.{name}"


def test_a_new_suite_runs_on_arm_unless_it_is_left_out_by_name():
    script = (TOP / "tools/test-arm").read_text()
    (wanted,) = re.findall(r"^filter=\$\{1:-(.*)\}$", script, re.M)
    assert wanted == "*-$left_out"
    left_out = "".join(re.findall(r"^left_out\+?='(.*)'$", script, re.M)).split(":")
    found = list(all_tests())
    assert len(found) > 300
    for pattern in left_out:
        assert fnmatch.filter((name for _, name in found), pattern), f"{pattern}: no such test"
    suites = {name.partition(".")[0] for where, name in found if where == "contract"}
    run = {
        n.partition(".")[0]
        for _, n in found
        if not any(fnmatch.fnmatchcase(n, p) for p in left_out)
    }
    assert suites - run == {"Rule08Fork"}
