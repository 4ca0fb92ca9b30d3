"""Shell blocks of README and docs run as they stand, in a folder with the scripts of their page.

Programs that install or schedule are replaced by stand-ins which check their arguments: pip, brew, srun, scontrol,
vmd, pytest. `medyanpy` is the installed one. In the normal run `--until N` is shortened; `-m long` runs to N.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from test_documents import fences

import medyanpy as mp

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS = ("sh", "bash", "console", "shell")
SHELL = [(page, n) for page in PAGES for n in range(len(fences(page, *SHELLS)))]
SHORT = 300
# Commands that .ci/run carries out itself.
BY_CI = ("ruff check .", "cython-lint medyanpy", "python -P -m sphinx", "medyanpy demo")


def name_of(parameter):
    return parameter.relative_to(ROOT).as_posix() if isinstance(parameter, Path) else str(parameter)


def block(page, n):
    return fences(page, *SHELLS)[n][1]


def script_of(page):
    """The first Python block of a page that defines what `medyanpy run` asks for, without what calls it."""
    for _, text, _ in fences(page, "python"):
        if re.search(r"^def make\(directory\)", text, re.MULTILINE):
            return re.split(r"^outcome = ", text, flags=re.MULTILINE)[0]
    return None


STAND_IN = """#!{python} -P
import os, pathlib, re, subprocess, sys, tomllib
name, args = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
root = pathlib.Path({root!r})
with open({log!r}, "a") as log:
    print(name, *args, file=log)
def real(*command):
    sys.exit(subprocess.run(command).returncode)
def known(args, *options):
    wrong = [a for a in args if a.startswith("-") and a not in options]
    assert not wrong, f"{{name}}: {{wrong}}"
if name == "pip":
    assert args[0] == "install", args
    with open(root / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    for a in args[1:]:
        if re.fullmatch(r"-Csetup-args=-Disa=(auto|all|baseline)", a):
            continue
        match = re.fullmatch(r"(?:\\.|medyanpy)(?:\\[([\\w,]+)\\])?", a)
        assert match, f"pip install {{a}}"
        for extra in (match[1] or "").split(","):
            assert not extra or extra in extras, f"no extra {{extra}}"
elif name == "brew":
    if args[0] == "--prefix":
        print("brewed")
    else:
        assert args == ["install", "libomp"], args
elif name in ("pytest", "python", "python3"):
    if args[:2] == ["-m", "venv"]:
        real(sys.executable, "-m", "venv", "--without-pip", *args[2:])
    if args[:1] == ["tests/validation/figures"]:
        real(sys.executable, "-P", root / args[0], *args[1:], "--list")
    known([a for a in args if a != "--quick"], "-n", "-q", "-m")
    files = [a for a in args if "/" in a]
    assert all((root / f).exists() for f in files), files
    if name != "pytest":
        assert files[0] in {{p.relative_to(root).as_posix() for p in (root / "tests/benchmarks").glob("bench_*.py")}}
elif name == "srun":
    real(*args)
elif name == "scontrol":
    assert args[0] == "requeue" and len(args) == 2, args
elif name == "vmd":
    assert args and all(pathlib.Path(a).stat().st_size for a in args), args
elif name == "register-python-argcomplete":
    assert args == ["medyanpy"], args
    print("true")
elif name == "medyanpy":
    medyanpy = [sys.executable, "-P", "-W", "error", "-m", "medyanpy"]
    if args[0] == "run" and os.environ.get("TIME_IS_UP") == "1":
        i = args.index("--until")
        done = subprocess.run([*medyanpy, *args[: i + 1], "100", *args[i + 2 :]]).returncode
        sys.exit(done or 3)
    real(*medyanpy, *args)
else:
    raise AssertionError(name)
"""
NAMES = ("pip", "brew", "pytest", "python", "python3", "srun", "scontrol", "vmd", "medyanpy",
         "register-python-argcomplete")  # fmt: skip


@pytest.fixture
def shell(tmp_path):
    """Runs a text in a folder of its own; gives its exit status and the commands that stand-ins have seen."""
    folder, programs, log = tmp_path / "work", tmp_path / "bin", tmp_path / "log"
    for new in (folder, programs):
        new.mkdir()
    for name in NAMES:
        path = programs / name
        path.write_text(STAND_IN.format(python=sys.executable, root=str(ROOT), log=str(log)), encoding="utf-8")
        path.chmod(0o755)

    def run(text, *, options=("-eu",), **variables):
        log.write_text("", encoding="utf-8")
        environment = {**os.environ, "PATH": f"{programs}:/usr/bin:/bin", "OMP_NUM_THREADS": "1", **variables}
        done = subprocess.run(["bash", *options, "-c", text], cwd=folder, env=environment, capture_output=True,
                              text=True, timeout=3000, check=False)  # fmt: skip
        return done, log.read_text(encoding="utf-8").splitlines()

    run.folder = folder
    return run


def prepare(page, text, folder):
    """The files that a block of this page reads: its script under the name that it has there, and a run of it."""
    source = script_of(page) or script_of(ROOT / "docs" / "command_line.md")
    for name in dict.fromkeys(re.findall(r"\b(\w+)\.py\b", text)) or ["cell"]:
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    # Enough for a frame, or less than what the block goes on to.
    until = SHORT // 3 if "--until" in text else 2000
    needed = re.findall(r"(?<![\w/])(?:(\w+)/)?run\.(?:h5|checkpoint)\b", text)
    for run in dict.fromkeys(needed):
        command = ["run", *[str(path) for path in folder.glob("*.py")][:1], "--until", str(until)]
        command += ["--dir", str(folder / (run or "made"))]
        subprocess.run([sys.executable, "-P", "-m", "medyanpy", *command], check=True, capture_output=True, cwd=folder)
        if not run:
            for made in (folder / "made").iterdir():
                shutil.copy(made, folder)


def shortened(text):
    return re.sub(r"--until \d+", f"--until {SHORT}", text)


def check(page, shell, text):
    commands = [line.split("#")[0].strip() for line in text.splitlines() if line.strip()]
    if any(part in line for line in commands for part in BY_CI) and not text.startswith("#!"):
        ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
        for line in commands:
            for command in line.split("&&"):
                known = [part for part in (*BY_CI, "pip install", "bash .ci/run") if command.strip().startswith(part)]
                assert known, command
                assert known[0] == "bash .ci/run" or known[0] in ci, command
        return
    prepare(page, text, shell.folder)
    if not text.startswith("#!"):
        done, _ = shell(text)
        if "pip install 'medyanpy[" in done.stderr:
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stderr
        return
    # A job: killed by its time limit once, queued again, and then done.
    options = re.findall(r"--[\w-]+", " ".join(line for line in text.splitlines() if line.startswith("#SBATCH")))
    assert set(options) <= {"--array", "--time", "--cpus-per-task", "--requeue", "--signal", "--open-mode"}
    variables = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_JOB_ID": "41", "SLURM_JOB_ID": "48"}
    done, seen = shell(text, options=(), TIME_IS_UP="1", **variables)
    asked = [line for line in seen if line.startswith("scontrol requeue")]
    assert asked in (["scontrol requeue 41_7"], ["scontrol requeue 48"]), (seen, done.stderr)
    done, seen = shell(text, options=(), **variables)
    assert done.returncode == 0, done.stderr
    assert not [line for line in seen if line.startswith("scontrol")]
    (folder,) = {path.parent for path in shell.folder.rglob("run.checkpoint")}
    until = int(re.search(r"--until (\d+)", text)[1])
    with mp.Simulation.resume(folder / "run.checkpoint") as simulation:
        assert simulation.current_step == until
    # A call that cannot be used is an error of the job, not a job that is done.
    done, seen = shell(text.replace("medyanpy run ", "medyanpy run --no-such-option "), options=(), **variables)
    assert done.returncode == 2
    assert not [line for line in seen if line.startswith("scontrol")]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "n"), SHELL, ids=name_of)
def test_a_shell_block_runs(page, n, shell):
    check(page, shell, shortened(block(page, n)))


@pytest.mark.long
@pytest.mark.parametrize(("page", "n"), [case for case in SHELL if "--until" in block(*case)], ids=name_of)
def test_a_shell_block_runs_to_its_last_step(page, n, shell):
    """Without a warning of any kind."""
    check(page, shell, block(page, n))


@pytest.mark.slow
def test_the_shell_line_of_the_snakemake_recipe_runs(shell):
    page = ROOT / "docs" / "many_runs.md"
    (line,) = re.findall(r'^    shell: "(.*)"$', page.read_text(encoding="utf-8"), re.MULTILINE)
    text = shortened(line.replace("{wildcards.i}", "3"))
    prepare(page, text, shell.folder)
    done, _ = shell(text)
    assert done.returncode == 0, done.stderr
    assert (shell.folder / "runs" / "3" / "run.checkpoint").exists()


@pytest.mark.long
def test_snakemake_runs_its_recipe(shell):
    """Two runs of the hundred."""
    pytest.importorskip("snakemake", reason="snakemake is not installed here")
    page = (ROOT / "docs" / "many_runs.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```text\n(RUNS = .*?)^```$", page, re.MULTILINE | re.DOTALL)
    text = shortened(text).replace("range(100)", "range(2)")
    (shell.folder / "Snakefile").write_text(text, encoding="utf-8")
    prepare(ROOT / "docs" / "many_runs.md", text, shell.folder)
    done, _ = shell(f"{sys.executable} -P -m snakemake --cores 1 --quiet all")
    assert done.returncode == 0, done.stderr
    assert sorted(path.parent.name for path in shell.folder.glob("runs/*/done")) == ["0", "1"]


def test_extras_that_pages_name_exist():
    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    for page in PAGES:
        for names in re.findall(r"(?:medyanpy|'\.)\[([\w,]+)\]", page.read_text(encoding="utf-8")):
            assert set(names.split(",")) <= set(extras), (page.name, names)
