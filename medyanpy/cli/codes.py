"""How the command ends, for scripts and schedulers."""

__all__ = ["BAD_INPUT", "DONE", "EXIT_CODES", "FAILED", "INTERRUPTED", "TIME_UP"]

DONE = 0
FAILED = 1
BAD_INPUT = 2
TIME_UP = 3
INTERRUPTED = 130

#: In the words of ``--help``.
EXIT_CODES = {
    DONE: "done",
    FAILED: "a run failed, a file could not be written, or something measured is not as expected",
    BAD_INPUT: "input that cannot be used; nothing was changed",
    TIME_UP: "time is up and a checkpoint saved: call again with the same words",
    INTERRUPTED: "interrupted by Ctrl-C",
}
