"""Exit codes of the command, for scripts and schedulers."""

__all__ = ["BAD_INPUT", "DONE", "EXIT_CODES", "FAILED", "INTERRUPTED", "PIPE_CLOSED", "TIME_UP", "TOO_LITTLE_TIME"]

DONE = 0
FAILED = 1
BAD_INPUT = 2
TIME_UP = 3
TOO_LITTLE_TIME = 4
INTERRUPTED = 130
# As shells show programs that end by SIGPIPE.
PIPE_CLOSED = 141

#: In the words of ``--help``.
EXIT_CODES = {
    DONE: "done",
    FAILED: "a run failed, a file could not be written, or something measured is not as expected",
    BAD_INPUT: "input that cannot be used; nothing was changed",
    TIME_UP: "time is up and a checkpoint saved: call again with the same words",
    TOO_LITTLE_TIME: "the walltime is shorter than a single step, which was taken and saved: give more time",
    INTERRUPTED: "interrupted by Ctrl-C",
    PIPE_CLOSED: "what reads standard output has ended, as `head` does",
}
