"""Every benchmark with small numbers, to see that it runs: python tests/benchmarks/all_quick.py

What they print is of no use as a measurement. The exit code is 1 if one of them ends with an error.
"""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

AT_ONCE = 2


def run(script: Path) -> tuple[float, int, str]:
    """Run one, and return seconds, exit code and what it printed."""
    started = time.perf_counter()
    command = [sys.executable, script, "--quick"]
    ended = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return time.perf_counter() - started, ended.returncode, ended.stdout


def main() -> int:
    failed = []
    scripts = sorted(Path(__file__).parent.glob("bench_*.py"))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for script, (seconds, code, printed) in zip(scripts, pool.map(run, scripts), strict=True):
            print(f"{printed}--- {script.name}: {seconds:.1f} s, exit code {code}\n", flush=True)
            if code:
                failed.append(script.name)
    print("failed: " + ", ".join(failed) if failed else "all of them run")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
