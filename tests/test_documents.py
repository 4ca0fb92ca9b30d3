"""Documents stay true: what they show runs, what they promise is there, what they describe is described in full."""

import csv
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy._kernels.core import program
from medyanpy.engine import faults

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LOG = ROOT / "docs" / "data" / "long_runs.csv"
RECORDED = sorted(set((ROOT / "docs" / "data").glob("*.csv")) - {LOG})
GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.py"))
# Folders of a machine, and what went wrong.
PRIVATE = r"(?<![\w.])/(?:tmp|home|root|Users|var|opt|usr|work)/|[A-Z]:\\\\|site-packages|Traceback"
TUTORIALS = sorted((ROOT / "tutorials").glob("*.ipynb"))
# A comment before a fence keeps it out of the page's script, for the reason it gives.
NOT_RUN = "<!-- not run"
WITH_KERNEL = "<!-- needs the kernel -->"
# Further laws of pages, by their names.
LAWS = ROOT / "tests" / "pages"
WITH_PACKAGE = re.compile(r"<!-- needs (\w+) -->")


def fences(page, *languages):
    """(number of the first line, text, the line before the fence) of every code block in one of these languages.

    Of what a page leaves out, too: a comment that begins with a line `<!-- hidden python` and ends with `-->` alone.
    """
    lines = page.read_text(encoding="utf-8").splitlines()
    heads = [head + language for language in languages for head in ("```", "<!-- hidden ")]
    found, start, before, end = [], None, "", ""
    for i, line in enumerate(lines):
        if start is None and line.strip() in heads:
            start, before, end = i + 1, lines[i - 1] if i else "", "```" if line.strip()[0] == "`" else "-->"
        elif start is not None and line.strip() == end:
            found.append((start, "\n".join(lines[start:i]), before))
            start = None
    assert start is None, f"{page.name}: the block at line {start} does not end"
    return found


def run_page(script, folder, page=None):
    """The script of a page, as the module `page`; then its further laws in tests/pages, if a page is given. The last
    line of what it prints says that it came to its end."""
    end = "\nprint('all of it')\n"
    laws = LAWS / f"{page}.py"
    if not laws.exists():
        return run_script(script + end, folder / "page.py", folder)
    (folder / "page.py").write_text(script, encoding="utf-8")
    text = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    return run_script(text + laws.read_text(encoding="utf-8") + end, folder / "laws.py", folder)


def run_script(text, path, folder, warnings="error"):
    path.write_text(text, encoding="utf-8")
    # One thread: waiting threads cost much where tests share a machine, and no result depends on it.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    return subprocess.run(
        [sys.executable, "-W", warnings, str(path)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


# Code --------------------------------------------------------------------------------------------------------


# Pixels take most of the time of some pages: pictures are smaller, unless a page says how large. No name is left over.
SMALL_PICTURES = (
    "(lambda i, v: [i.unwrap(f).__kwdefaults__.update(size=(320, 240)) for f in (v.draw, v.movie)])"
    "(__import__('inspect'), __import__('medyanpy.visualize', fromlist=['draw']))"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [p for p in PAGES if fences(p, "python")], ids=lambda page: str(page.relative_to(ROOT))
)
def test_code_on_a_page_runs(page, tmp_path):
    """All blocks of a page are one script, at the line numbers they have on the page."""
    blocks = [b for b in fences(page, "python")
              if not b[2].startswith((NOT_RUN, WITH_KERNEL)) and not WITH_PACKAGE.match(b[2])]  # fmt: skip
    kernel = any(before.startswith(WITH_KERNEL) for _, _, before in fences(page, "python"))
    script = ""
    for start, text, _ in blocks:
        script += "\n" * (start - script.count("\n")) + text + "\n"
    if "visualize" in script:
        script = SMALL_PICTURES + script
    done = run_page(script, tmp_path, None if kernel else page.stem)
    assert done.returncode == 0, f"{page.relative_to(ROOT)}, at the line numbers of the page:\n{done.stderr}"
    assert done.stdout.endswith("all of it\n")


def test_further_laws_are_those_of_pages():
    assert {path.stem for path in LAWS.glob("*.py")} <= {page.stem for page in PAGES}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "package", "text"),
    [pytest.param(p, match[1], text, id=f"{p.stem}-{match[1]}") for p in PAGES for _, text, before in
     fences(p, "python") if (match := WITH_PACKAGE.match(before))],
)  # fmt: skip
def test_code_that_needs_a_package_of_others_runs(page, package, text, tmp_path):
    pytest.importorskip(package)
    # What they import may warn.
    done = run_script(text, tmp_path / f"{page.stem}.py", tmp_path, "default")
    assert done.returncode == 0, done.stderr


def compile_kernel(page, name, folder):
    """As somebody else's package would: against the installed .pxd files, and nothing of this checkout."""
    (folder / f"{name}.pyx").write_text(fences(page, "cython")[0][1], encoding="utf-8")
    compile_module(name, folder, Path(mp.__file__).parents[1])
    return [text for _, text, before in fences(page, "python") if before.startswith(WITH_KERNEL)]


def compile_module(name, folder, declared):
    """The .pyx file of this name, with the .pxd files of a folder."""
    pytest.importorskip("Cython", reason="Cython is not installed here")
    compiler = shutil.which("cc") or shutil.which("gcc")
    include = Path(sysconfig.get_paths()["include"])
    if compiler is None or not (include / "Python.h").exists():
        pytest.skip("there is no C compiler, or no header of Python")
    directives = "language_level=3,wraparound=False,cdivision=True,boundscheck=False"
    for command in (
        [sys.executable, "-m", "cython", "-X", directives, "-I", str(declared), f"{name}.pyx"],
        [compiler, "-shared", "-fPIC", "-O1", "-ffp-contract=off", f"-I{include}", f"{name}.c", "-o"]
        + [name + sysconfig.get_config_var("EXT_SUFFIX")],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_kernel_of_the_page_on_forces_compiles_and_keeps_the_contract(tmp_path):
    blocks = compile_kernel(ROOT / "docs" / "add_a_force.md", "wall", tmp_path)
    script = "\n".join(
        [
            f"import sys; sys.path.insert(0, {str(tmp_path)!r})",
            "import numpy as np, medyanpy as mp",
            "from medyanpy.testing import ForceCase, check_force",
            blocks[0].replace("medyanpy._kernels.forces.wall", "wall"),
            "mp.forces.HarmonicWall = HarmonicWall",
            blocks[1],
            "check_force(*CASES)",
            "force = CASES[0].build()[1]",
            "force.set(point=[0.0, 0.0, 1.0])",
            "assert force.parameters['point'].tolist() == [0.0, 0.0, 1.0]",
        ]
    )
    done = run_script(script, tmp_path / "contract.py", tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_radial_energy_of_the_page_on_forces_is_a_function_a_class_and_a_row(tmp_path):
    """The function is put into a copy of radial.pxd, and the loop over neighbours compiled with that: nothing else."""
    page, kernels = ROOT / "docs" / "add_a_force.md", ROOT / "medyanpy" / "_kernels"
    parts = {before: text for _, text, before in fences(page, "cython") if before.startswith("<!-- radial.pxd")}
    number, function, branch = (parts[f"<!-- radial.pxd: {part} -->"] for part in ("number", "function", "branch"))
    declared = tmp_path / "declared" / "medyanpy" / "_kernels"
    shutil.copytree(kernels, declared, ignore=shutil.ignore_patterns("*.pyx", "*.py", "baseline", "avx*"))
    for package in (declared, declared.parent):
        (package / "__init__.py").touch()
    text = (kernels / "forces" / "radial.pxd").read_text(encoding="utf-8")
    for place, new in (
        ("\n\n\ncdef enum:", f"\n{number}"),
        ("cdef inline void evaluate(", f"{function}\n\n\n"),
        ("    else:\n        ending_at(", f"{branch}\n"),
    ):
        assert text.count(place) == 1
        text = text.replace(place, new + place)
    (declared / "forces" / "radial.pxd").write_text(text, encoding="utf-8")
    shutil.copy(declared / "forces" / "radial.pxd", tmp_path)
    for name in ("radial", "pairs"):
        shutil.copy(kernels / "forces" / f"{name}.pyx", tmp_path)
        compile_module(name, tmp_path, declared.parents[1])
    *_, morse, row = [text for _, text, before in fences(page, "python") if before.startswith(WITH_KERNEL)]
    script = "\n".join(
        [
            f"import sys; sys.path.insert(0, {str(tmp_path)!r})",
            "import numpy as np, medyanpy as mp, pairs",
            "from medyanpy.forces import _pair_force",
            "from medyanpy.testing import ForceCase, check_force",
            "_pair_force.pairs = pairs",
            morse.replace("medyanpy._kernels.forces.radial", "radial"),
            row,
            "check_force(*CASES)",
        ]
    )
    done = run_script(script, tmp_path / "contract.py", tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "kernel", "parts"),
    [("add_a_kind_of_bead", "rails", 3), ("add_a_column", "breathing", 2), ("add_a_letter", "gyration", 2),
     ("add_a_jump", "switching", 2), ("births", "births", 2)],
)
def test_the_kernel_of_a_page_compiles_and_the_laws_on_it_hold(page, kernel, parts, tmp_path):
    blocks = compile_kernel(ROOT / "docs" / f"{page}.md", kernel, tmp_path)
    assert len(blocks) == parts
    script = "\n".join([f"import sys; sys.path.insert(0, {str(tmp_path)!r})", *blocks])
    assert (LAWS / f"{page}.py").exists()
    done = run_page(script, tmp_path, page)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all of it\n"


# Pictures and tutorials ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_a_picture_of_the_gallery_is_made_by_its_script(script, tmp_path):
    """With few steps. What is changed for that is the number of them, in one place."""
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 30
    short, changed = re.subn(r"^steps = \d+$", "steps = 20", text, flags=re.MULTILINE)
    assert changed == 1
    done = run_script(short, tmp_path / script.name, tmp_path)
    assert done.returncode == 0, done.stderr
    (made,) = tmp_path.glob("*.png")
    assert made.name == f"{script.stem}.png"
    assert png_size(made) == png_size(script.with_suffix(".png"))


def png_size(path):
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return content[16:24]


def test_the_gallery_shows_each_script_with_its_picture():
    folder = ROOT / "docs" / "gallery"
    page = (folder / "index.md").read_text(encoding="utf-8")
    names = [script.stem for script in GALLERY]
    assert len(names) >= 12
    assert sorted(re.findall(r"\]\((\w+)\.png\)", page)) == names
    assert sorted(re.findall(r"```\{literalinclude\} (\w+)\.py", page)) == names
    assert sorted(path.stem for path in folder.glob("*.png")) == names
    assert all(path.stat().st_size < 150_000 for path in folder.glob("*.png"))


def test_recorded_tables_say_where_they_come_from_and_are_shown():
    page = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    shown = re.findall(r"```\{image\} images/recorded/(\w+)\.png", page)
    assert sorted(shown) == [table.stem for table in RECORDED]
    assert sorted(path.stem for path in (ROOT / "docs" / "images" / "recorded").iterdir()) == sorted(shown)
    for table in RECORDED:
        about, made, columns, *rows = table.read_text(encoding="utf-8").splitlines()
        assert re.fullmatch(r"# [A-Z].*\.", about)
        script = re.fullmatch(r"# 20\d\d-\d\d-\d\d, commit [0-9a-f]{7}, (tests/[\w/]+\.py).*", made)[1]
        assert (ROOT / script).exists()
        assert {row.count(",") for row in rows} == {columns.count(",")}
        assert table.stat().st_size < 20_000


def test_the_log_of_long_runs_is_complete_and_shown():
    with LOG.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["date", "commit", "run", "result"]
    assert rows == sorted(rows, key=lambda row: row[0])
    for date, commit, run, result in rows:
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", date)
        assert re.match(r"[0-9a-f]{7}\b", commit)
        assert run
        assert result
    page = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    assert ":file: data/long_runs.csv" in page


@pytest.mark.slow
def test_plots_of_recorded_tables_are_made_by_their_script(tmp_path):
    folder = shutil.copytree(ROOT / "docs" / "data", tmp_path / "data")
    text = (folder / "draw.py").read_text(encoding="utf-8")
    made = tmp_path / "images" / "recorded"
    made.mkdir(parents=True)
    done = run_script(text, folder / "draw.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(path.stem for path in made.iterdir()) == [table.stem for table in RECORDED]
    for path in made.iterdir():
        assert png_size(path) == png_size(ROOT / "docs" / "images" / "recorded" / path.name)


@pytest.mark.parametrize("notebook", TUTORIALS, ids=lambda notebook: notebook.stem)
def test_tutorials_hold_their_results(notebook):
    """As `tutorials/store_outputs.py` puts them there: all cells, in order, without what went wrong or is private."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"] == []
    for output in outputs:
        data = {kind: text for kind, text in output.get("data", {}).items() if not kind.startswith("image/")}
        said = json.dumps([output.get("text"), data])
        assert "<Figure" not in said or "image/png" in output["data"], "a picture is not shown, but told of"
        assert re.search(PRIVATE, said) is None, said


def test_tutorials_are_small():
    assert sum(notebook.stat().st_size for notebook in TUTORIALS) < 6_000_000


# The top level -----------------------------------------------------------------------------------------------


def test_the_readme_has_exactly_the_two_set_up_commands_on_its_first_screen():
    commands = fences(ROOT / "README.md", "sh")
    assert [text for _, text, _ in commands] == ["pip install . && medyanpy demo", "pip install '.[test]' && pytest"]
    assert commands[-1][0] < 25


def test_citation_names_this_version():
    assert f"version: {mp.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "citing.md").read_text(encoding="utf-8")
    assert f"Version {mp.__version__}," in page
    assert f"version = {{{mp.__version__}}}" in page


def test_relative_links_lead_somewhere():
    missing = []
    for page in PAGES:
        # Links are not looked for in code.
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" in target or target.startswith("#"):
                continue
            name, _, anchor = target.partition("#")
            other = (page.parent / name).resolve()
            if not other.exists():
                missing.append(f"{page.relative_to(ROOT)}: {target}")
            elif anchor and anchor not in anchors(other):
                missing.append(f"{page.relative_to(ROOT)}: {target} (no such heading)")
    assert not missing


def anchors(page):
    """Names under which headings can be linked to."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


#: Files that a page shows how to write.
MADE = {
    "add_a_column.md": {"breathing.pyx"},
    "add_a_force.md": {"medyanpy/_kernels/forces/wall.pyx", "medyanpy/forces/wall.py"},
    "add_a_jump.md": {"switching.pyx"},
    "add_a_kind_of_bead.md": {"rails.pyx"},
    "add_a_letter.md": {"gyration.pyx"},
    "add_a_reporter.md": {"medyanpy/reporters/gyration.py"},
    "births.md": {"births.pyx"},
}
SOURCE_FILE = re.compile(
    r"[\w.\-/]+\.(?:py|pyx|pxd|pxi|md|toml|build|ipynb|cff)|"
    r"(?:tests|medyanpy|docs|tutorials|_\w+|forces|beads|jumps|mesh|engine|files|\.ci)/[\w./\-:]*"
)


def paths_in(text):
    """What stands in backticks, outside of blocks of code, and looks like a file or folder of the source."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [name for name in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text) if SOURCE_FILE.fullmatch(name)]


def in_source(name):
    """Whether a path, from any folder on, is a file or a folder of the source."""
    parts = Path(name.partition("::")[0].rstrip("/")).parts
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in SKIPPED and (not f.startswith(".") or f in (".ci", ".github"))]
        if parts[-1] in (*files, *folders) and Path(folder, parts[-1]).parts[-len(parts) :] == parts:
            return True
    return False


def test_paths_that_pages_name_exist():
    missing = []
    for page in [*PAGES, ROOT / "CHANGELOG.md", LOG]:
        named = set(paths_in(page.read_text(encoding="utf-8"))) - MADE.get(page.name, set())
        missing += [f"{page.relative_to(ROOT)}: {name}" for name in sorted(named) if not in_source(name)]
    assert not missing, "\n".join(missing)


def test_a_path_that_does_not_exist_is_found():
    assert paths_in("see `_kernels/life.pxd` and `run.h5`, `tests/forces/` ```x `no/such.py` ```") == [
        "_kernels/life.pxd", "tests/forces/",
    ]  # fmt: skip
    assert in_source("forces/bonds.py")
    assert in_source("tests/forces/")
    assert not in_source("_kernels/life.pxd")
    assert not in_source("mesh/bonds.py")


def test_the_page_on_failures_lists_every_kind():
    """Each kind of fault has a row whose first column is part of the message that users see."""
    text = (ROOT / "docs" / "when_a_run_fails.md").read_text(encoding="utf-8")
    table = text[text.index("## What can happen") :].split("\n\n")[1]
    phrases = [row.split("|")[1].strip() for row in table.splitlines()[2:]]
    for kind in program.FAULTS.values():
        assert kind in faults._CAUSES, f"{kind}: no message"
        assert any(phrase in faults._CAUSES[kind] for phrase in phrases), f"{kind}: no row in when_a_run_fails.md"


@pytest.mark.parametrize("page", ["docs/when_a_run_fails.md", "docs/theory/geodesic.md"])
def test_pages_tell_how_many_crossings_are_too_many(page):
    """On a strip of two triangles that is flown up and down, two edges (diagonal and border) for each width of it."""
    found = re.findall(r"more than\s+([\d ]+) edges in one G", (ROOT / page).read_text(encoding="utf-8"))
    assert len(found) == 1
    number = int(found[0].replace(" ", ""))

    def fly(crossings):
        topology = mp.Topology()
        strip = mp.TriangleMesh([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]])
        membrane = topology.add_membrane(strip, vertex_mass=1.0, fixed=True)
        point = topology.add_intriangle_points(membrane, triangles=[0], barycentric=[[0.4, 0.3, 0.3]], mass=1.0)
        simulation = mp.Simulation(mp.System(topology), mp.SplittingIntegrator("BAGAB", 1.0), threads=1)
        velocities = np.zeros((topology.n_beads, 3))
        velocities[point.beads, 1] = 0.5 * crossings
        simulation.context.set_velocities(velocities)
        simulation.step(1)

    fly(number - 10)
    refuses(mp.SimulationError, "crosses edges without end", fly, number + 10)


def test_the_changelog_knows_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(mp.__version__)}\]", text, flags=re.MULTILINE)


def read_cff(text):
    """The block style of YAML that CITATION.cff is written in: nested dicts, lists, plain and quoted scalars."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        assert "\t" not in line, f"line {number}: a tab"
        indent = len(line) - len(line.lstrip())
        content = line.strip()
        while content.startswith("- "):
            rows.append((indent, "-", "", number))
            indent, content = indent + 2, content[2:]
        found = re.fullmatch(r"([\w-]+):(?: (.*))?", content)
        if found:
            rows.append((indent, found[1], scalar(found[2] or "", number), number))
        else:
            rows.append((indent, "", scalar(content, number), number))
    out, rest = parse(rows, 0)
    assert not rest, f"line {rest[0][3]}: wrong indentation"
    return out


def scalar(value, number):
    if value.startswith('"'):
        assert re.fullmatch('"[^"]*"', value), f"line {number}: quotes"
        return value[1:-1]
    assert not re.search(r"""[{}\[\]&*!|>'"%@`#]|: """, value), f"line {number}: {value} needs quotes"
    return value


def parse(rows, indent):
    first = rows[0]
    assert first[0] >= indent, f"line {first[3]}: nothing is nested here"
    indent = first[0]
    items = first[1] == "-"
    out = [] if items else {}
    while rows and rows[0][0] == indent and (rows[0][1] == "-") == items:
        _, key, value, number = rows[0]
        rows = rows[1:]
        if items and rows[0][1] == "":
            out.append(rows[0][2])
            rows = rows[1:]
            continue
        if items or not value:
            value, rows = parse(rows, indent + (2 if items else 0) + (0 if items else 1))
        if items:
            out.append(value)
        else:
            assert key not in out, f"line {number}: {key} twice"
            out[key] = value
    return out, rows


def test_the_citation_file_can_be_read():
    cff = read_cff((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cff["cff-version"] == "1.2.0"
    assert cff["title"]
    assert cff["message"]
    assert cff["authors"] == [{"name": "The medyanpy developers"}]
    assert cff["version"] == mp.__version__
    assert cff["license"] == "MIT"
    first_authors = [(r["authors"][0], r) for r in cff["references"]]
    cited = {(a.get("family-names", a.get("name")), r.get("year")) for a, r in first_authors}
    assert cited == {
        ("The MEDYAN.jl developers", None),
        ("Andersen", "1980"),
        ("Andersen", "1983"),
        ("Rotne", "1969"),
        ("Leimkuhler", "2013"),
        ("Bond", "2007"),
        ("Salmon", "2011"),
        ("Ladd", "2009"),
        ("Zhang", "1997"),
        ("Tao", "2016"),
    }
    for reference in cff["references"]:
        assert {"type", "title", "authors"} <= set(reference)
        assert re.fullmatch(r"10\.\d{4,9}/\S+", reference.get("doi", "10.1000/none"))


TEXT = {".md", ".py", ".pyx", ".pxd", ".toml", ".cff", ".build", ".options", ".ipynb", ".txt", ".in", ".yml", ".sh", ""}
SKIPPED = {"build", "dist", "_build", "node_modules"}
# Written in two parts, so that this file does not hold them.
MACHINE_PATH = re.compile(r"(?<![\w.~:/\-])/" + r"(?:home|root|work|tmp|opt|mnt|Users|scratch)/\w|[A-Z]:\\" + r"Users")
INDEX_HOST = re.compile(r"\b(?:pypi|pythonhosted|anaconda|npmjs)" + r"\.(?:org|com)\b")


def text_files():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(
            f for f in folders if f not in SKIPPED and (not f.startswith(".") or f == ".ci") and not f.startswith("__")
        )
        for name in sorted(files):
            path = Path(folder, name)
            if path.suffix in TEXT and path.is_file():
                yield path


def test_no_file_knows_a_machine_or_an_index():
    found = []
    for path in text_files():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if MACHINE_PATH.search(line) or INDEX_HOST.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)


# Docstrings --------------------------------------------------------------------------------------------------

PUBLIC = [
    (module, name)
    for module in ("medyanpy", "medyanpy.analysis", "medyanpy.forces", "medyanpy.presets", "medyanpy.reporters")
    for name in importlib.import_module(module).__all__
    if not name.startswith("__") and not inspect.ismodule(getattr(importlib.import_module(module), name))
]
UNIT = re.compile(r"\b(nm|pN|s|K|kelvin)\b|1/nm|nm²|nm³|°")
BOUND = re.compile(r"[<>]|\bsum 1\b|\bnot zero\b|\d to \d|\bfinite\b|\bdimensionless\b")
MANGLED = re.compile(r"^.*\b(?:Parameters|Returns|Raises|Notes|References|Examples) -{3,}.*$", re.MULTILINE)
SHAPE = re.compile(r"\([\w.]+,( ?[\w.]+)*,?\)|\.\.\.")


def sections(text):
    """Sections of a numpydoc text: title -> lines."""
    lines = inspect.cleandoc(text).splitlines()
    out, title = {"": []}, ""
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and lines[i + 1] and set(lines[i + 1]) == {"-"} and line.strip():
            title = line.strip()
            out[title] = []
        elif not (set(line) == {"-"} and title):
            out[title].append(line)
    return out


def entries(lines):
    """(names, type) of the entries of a Parameters section."""
    for line in lines:
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            yield [n.strip().lstrip("*") for n in names.split(",")], kind.strip()


def callables(owner):
    """What a user calls on an object: (where, signature, docstring)."""
    if not inspect.isclass(owner):
        if callable(owner):
            yield "", inspect.signature(owner), owner.__doc__
        return
    own = "__init__" in vars(owner) or not owner.__mro__[1:2] or not issubclass(owner, Exception)
    if own and not issubclass(owner, Exception):
        yield "", inspect.signature(owner.__init__), owner.__doc__
    for name, member in vars(owner).items():
        if name.startswith("_"):
            continue
        function = getattr(owner, name)
        if inspect.isfunction(function) or inspect.ismethod(function):
            yield f".{name}", inspect.signature(function), inspect.getdoc(function)
        elif isinstance(member, property):
            yield f".{name}", None, inspect.getdoc(member) or "property"


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda part: part)
def test_docstrings_tell_shapes_units_and_bounds(module, name):
    """Every public name has one; each parameter of type float has a unit or a bound, each array a shape."""
    owner = getattr(importlib.import_module(module), name)
    if not callable(owner):
        return
    assert (owner.__doc__ or "").strip(), f"{name} has no docstring"
    problems = []
    for where, signature, text in callables(owner):
        if not text:
            problems.append(f"{name}{where}: no docstring")
            continue
        parts = sections(text)
        for broken in MANGLED.findall(text):
            problems.append(f"{name}{where}: a title and its underline share a line: {broken.strip()}")
        listed = dict.fromkeys(n for names, _ in entries(parts.get("Parameters", [])) for n in names)
        # A constructor documents all its arguments.
        if not where and signature is not None:
            wanted = [p for p, kind in signature.parameters.items() if p != "self" and kind.kind not in (2, 4)]
            # Of a dataclass they are attributes.
            for names, _ in entries(parts.get("Attributes", [])):
                listed.update(dict.fromkeys(names))
            missing = [p for p in wanted if not p.startswith("_") and p not in listed]
            problems += [f"{name}: parameter {p} is not documented" for p in missing]
        for names, kind in entries(parts.get("Parameters", []) + parts.get("Attributes", [])):
            label = f"{name}{where}: {', '.join(names)} : {kind}"
            if re.search(r"\bfloat\b", kind) and not (UNIT.search(kind) or BOUND.search(kind) or ratio(names)):
                problems.append(f"{label} has neither unit nor bound")
            if re.search(r"\barray\b", kind) and not SHAPE.search(kind):
                problems.append(f"{label} has no shape")
    assert not problems, "\n".join(problems)


def ratio(names):
    """Weights and the like have no unit, and their bounds stand where they are given."""
    return bool({"barycentric"} & set(names))
