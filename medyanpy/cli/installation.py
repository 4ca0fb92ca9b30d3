"""``medyanpy test``."""

import argparse
import json
import sys
from dataclasses import asdict

from medyanpy.cli.codes import DONE, FAILED

__all__ = ["add", "run"]


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Add the command and its options."""
    parser = commands.add_parser(
        "test",
        help="verify this installation: forces, threads, instruction sets, checkpoints",
        description="Verifies this installation in less than half a minute: every force against differences of its "
        "energy; the same bits on any number of threads, with every instruction set, and after a checkpoint. Exit code "
        "1 if one of them fails.",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="default: as many as the machine offers")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; the exit code is 1 if a line reads FAILED."""
    from medyanpy.testing.installation import check_installation

    findings = []
    for finding in check_installation(options.threads):
        findings.append(finding)
        if not options.json:
            print(f"{finding.name:<40}{'OK' if finding.passed else 'FAILED':<8}{finding.detail}", flush=True)
    wrong = [finding.name for finding in findings if not finding.passed]
    if options.json:
        print(json.dumps({"passed": not wrong, "findings": [asdict(finding) for finding in findings]}, indent=2))
    elif not wrong:
        print(f"all {len(findings)} passed")
    if wrong:
        print(f"medyanpy: this installation does not compute as it should: {', '.join(wrong)}", file=sys.stderr)
    return FAILED if wrong else DONE
