"""Every benchmark with small numbers, to see that it runs: python tests/benchmarks/all_quick.py

What they print is of no use as a measurement. The exit code is 1 if one of them ends with an error.
"""

import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    failed = []
    for script in sorted(Path(__file__).parent.glob("bench_*.py")):
        started = time.perf_counter()
        ended = subprocess.run([sys.executable, script, "--quick"], check=False).returncode
        print(f"--- {script.name}: {time.perf_counter() - started:.1f} s, exit code {ended}\n", flush=True)
        if ended:
            failed.append(script.name)
    print("failed: " + ", ".join(failed) if failed else "all of them run")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
