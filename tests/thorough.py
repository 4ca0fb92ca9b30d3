"""Choose the tests that plain `pytest` leaves out for their time: `thorough.txt`, which conftest.py reads.

`pytest -m "not long" --junit-xml=times.xml`, then `python tests/thorough.py times.xml`: of all tests that are not long,
those that take longest are listed until the others together take at most the time that is allowed. What is listed
already stays: doubles, by hand, whose law other parameters hold in the plain run.

What tests share is counted with the first of them: look at `pytest --durations=20` afterwards.
"""

import argparse
import sys
from pathlib import Path
from xml.etree import ElementTree

LIST = Path(__file__).with_suffix(".txt")


def times(report: Path) -> dict[str, float]:
    """Seconds of each test of a report in the form of JUnit, by node id."""
    out = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        module, name = case.get("classname").replace(".", "/"), case.get("name")
        # Notebooks are modules whose name ends with their suffix.
        node = (f"{module.removesuffix('/ipynb')}.ipynb" if module.endswith("/ipynb") else f"{module}.py") + f"::{name}"
        out[node] = float(case.get("time"))
    return out


def longest(seconds: dict[str, float], allowed: float, listed: set[str]) -> list[str]:
    """Tests without which the others take at most `allowed` seconds, the listed among them, in alphabetical order."""
    out = [name for name in seconds if name in listed]
    others = {name: time for name, time in seconds.items() if name not in listed}
    left = sum(others.values())
    for name in sorted(others, key=lambda one: (-others[one], one)):
        if left <= allowed:
            break
        left -= seconds[name]
        out.append(name)
    return sorted(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("--allowed", type=float, default=440.0, help="seconds that all others may take together")
    given = parser.parse_args()
    found = times(given.report)
    names = longest(found, given.allowed, set(LIST.read_text(encoding="utf-8").splitlines()))
    LIST.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    spent, whole = sum(found[name] for name in names), sum(found.values())
    print(f"{len(names)} of {len(found)} tests, {spent:.0f} of {whole:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
