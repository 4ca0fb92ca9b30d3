"""Lists that documents repeat from the program are the program's."""

import importlib
import inspect
import re
from pathlib import Path
from string import ascii_uppercase

import pytest

import medyanpy
from medyanpy import cli, presets, reporters, surfaces
from medyanpy.core.words import parse_word
from medyanpy.demo import DEMOS
from medyanpy.demo.report import OUTPUTS
from medyanpy.errors import ParameterError
from medyanpy.files.exports import exporting
from medyanpy.reporters.state_data import COLUMNS

ROOT = Path(__file__).resolve().parents[1]


def text_of(*parts):
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def table(page, head):
    """The cells of the rows of a table; a first cell that is empty repeats the one above."""
    _, found, rest = page.partition(head)
    assert found, f"no table begins with {head}"
    rows = []
    for line in rest.splitlines()[2:]:
        if not line.startswith("|"):
            break
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        rows.append([cells[0] or rows[-1][0], *cells[1:]])
    return rows


def test_columns_of_tables():
    """In their order; the titles of `temperatures` depend on the topology."""
    rows = [(option, title) for option, title, _ in table(text_of("docs", "output.md"), "| option | title | meaning |")]
    assert [option for option, _ in rows] == [column.keyword for column in COLUMNS]
    for (option, title), column in zip(rows, COLUMNS, strict=True):
        assert title == column.title or option in ("temperatures", "molecules")


def test_options_of_the_reporter_of_tables():
    """The constructor asks for each column, and the docstring tells of each."""
    options = dict.fromkeys(column.keyword for column in COLUMNS)
    signature = inspect.signature(reporters.StateDataReporter).parameters
    described = re.findall(r"^    ([\w, ]+) : bool(?: or list of str)?$",
                           inspect.getdoc(reporters.StateDataReporter).replace("\n", "\n    "), re.M)  # fmt: skip
    told = {name.strip() for names in described for name in names.split(",")}
    assert set(options) <= set(signature)
    assert told - {"append", "overwrite"} == set(options)


def test_tutorials():
    files = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tutorials/*.ipynb"))
    assert re.findall(r"\((tutorials/[^)]*)\)", text_of("README.md")) == files


def test_the_number_of_tutorials():
    """The landing page spells it out."""
    numbers = ("Twelve", "Thirteen", "Fourteen", "Fifteen", "Sixteen", "Seventeen", "Eighteen", "Nineteen", "Twenty")
    (said,) = re.findall(r"^(\w+) notebooks", text_of("docs", "index.md"), re.M)
    assert numbers.index(said) + 12 == len(list(ROOT.glob("tutorials/*.ipynb")))


def test_demos_in_the_readme():
    assert [row[0] for row in table(text_of("README.md"), "| name | system |")] != []
    assert {row[0] for row in table(text_of("README.md"), "| name | system |")} == set(DEMOS)


def test_demos_on_the_command_line(capsys):
    """What is said of files and numbers is what the functions do by themselves."""
    with pytest.raises(SystemExit):
        cli.main(["demo", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    for name in OUTPUTS:
        assert name in said
    for which, entry in DEMOS.items():
        assert f"{which}: {entry.about}." in said
        defaults = {name: p.default for name, p in inspect.signature(entry.run).parameters.items()}
        for name in set(entry.options) - {"steps"}:
            if defaults[name] is not None:
                told = re.search(rf"--{name} N ([a-z, ]+): [^(]*\(default: {defaults[name]}\)", said)
                assert told, name
                assert which in told[1].split(", "), name
        steps = defaults["steps"] or "1500 t0"
        assert (f"(default: {steps};" if which == "points" else f"{which} {steps}") in said, which


def test_presets():
    """Those that make something are introduced on a page beside the reference."""
    makes = [name for name in presets.__all__ if inspect.isfunction(getattr(presets, name))]
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md") if path.name != "api.md")
    assert [name for name in makes if f"{name}()" not in pages] == []


def test_letters_of_words():
    """Those of the table make words; no others do."""
    letters = {row[0][1] for row in table(text_of("docs", "theory", "index.md"), "| letter | flow | solved | kernel |")}
    assert {letter for letter in ascii_uppercase if is_a_letter(letter)} == letters


def is_a_letter(letter):
    try:
        return bool(parse_word("D" if letter == "D" else f"AB{letter}BA"))
    except ParameterError:
        return False


def test_shapes_of_surfaces():
    rows = [row[0].partition("(")[0] for row in table(text_of("docs", "surfaces.md"), "| class | surface |")]
    assert sorted([*rows, "Boundary", "Surface"]) == sorted(surfaces.__all__)


def test_reporters():
    page = text_of("docs", "output.md")
    assert [name for name in reporters.__all__ if name != "Reporter" and f"`{name}`" not in page] == []


@pytest.mark.parametrize("module",
                         ["", "analysis", "boundaries", "ensemble", "forces", "jumps", "kicks", "presets", "reporters",
                          "rigid", "rods", "runs", "surfaces", "testing", "visualize"])  # fmt: skip
def test_the_reference_has_what_is_public(module):
    """Errors and units stand there as modules; what the package itself or `surfaces` offers too, once."""
    whole = importlib.import_module(".".join(["medyanpy", module]).rstrip("."))
    within = re.escape(f"{module}." * bool(module))
    documented = set(re.findall(rf"^   {within}(\w+)$", text_of("docs", "api.md"), re.M))
    public = {
        name
        for name in whole.__all__
        if (inspect.isclass(getattr(whole, name)) or inspect.isroutine(getattr(whole, name)))
        and (not module or getattr(medyanpy, name, None) is not getattr(whole, name))
        and (module == "surfaces" or getattr(surfaces, name, None) is not getattr(whole, name))
        and not getattr(whole, name).__module__.endswith(".errors")
    }
    assert documented == public


def test_cost_of_additions():
    """The lines of the examples, as the page on architecture counts them."""
    fence = re.compile(r"(?:<!-- ([^>]*) -->\n)?```(\w+)\n(.*?)```", re.DOTALL)

    def examples(page):
        lines = [(m[2], m[1] or "", len([x for x in m[3].splitlines() if x.strip()])) for m in fence.finditer(page)]
        kernels = [n for language, mark, n in lines if language == "cython" and not mark]
        radial = sum(n for language, mark, n in lines if mark.startswith("radial.pxd"))
        return kernels, radial, [n for language, mark, n in lines if mark == "needs the kernel"], lines

    rows = table(text_of("docs", "architecture.md"), "| to add | class, lines |")
    costs = {row[0]: (int(row[1]), row[2]) for row in rows}
    kernels, radial, classes, _ = examples(text_of("docs", "add_a_force.md"))
    assert costs.pop("a force") == (classes[0], str(kernels[0]))
    assert costs.pop("a radial pair energy") == (classes[2], f"{radial}, in `radial.pxd` itself")
    for page, what in (
        ("kind_of_bead", "a kind of bead"),
        ("column", "a kind with state and momenta of its own, and a force that drives them"),
        ("letter", "a letter"),
        ("jump", "a jump"),
    ):
        kernels, _, classes, _ = examples(text_of("docs", f"add_a_{page}.md"))
        assert costs.pop(what) == (classes[0], str(kernels[0]))
    lines = examples(text_of("docs", "add_a_reporter.md"))[-1]
    assert costs.pop("a reporter") == (max(n for language, _, n in lines if language == "python"), "")
    assert not costs


def test_formats_of_export():
    """One registry, `FORMATS`: the docstring, the command, and the pages name each of its endings, and no other."""
    endings = set(exporting.FORMATS)
    assert list(exporting.FORMATS) == sorted(exporting.FORMATS)
    rows = set(re.findall(r"^    ``(\.\w+)``$", medyanpy.export.__doc__, re.M))
    assert rows == endings
    parser = cli._parser()._subparsers._group_actions[0].choices["export"]
    assert set(re.findall(r"\.\w+(?=[,.] )", parser.description)) == endings
    _, _, about = text_of("docs", "command_line.md").partition("## `medyanpy export`")
    assert set(re.findall(r"`(\.\w+)`", about.partition("\n## ")[0])) == endings
    page = text_of("docs", "viewers.md")
    opens = " ".join(cells[1] for cells in table(page, "| | what opens |"))
    assert set(re.findall(r"\.\w+", opens)) - {".h5", ".h5md"} == endings
    listed = re.search(r"exports as ([^;]+);", text_of("README.md"))[1]
    for ending in endings:
        module = importlib.import_module(f"medyanpy.files.exports.{exporting.FORMATS[ending].module}")
        title = module.FORMAT.title
        # That of ParaView is named as what opens it.
        assert title.lower() in listed.lower() or title == "VTKHDF", f"{title} is not in README"
