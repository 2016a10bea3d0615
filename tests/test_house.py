"""The house rules that no linter knows."""

import ast
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = {"constraints.txt": "5.2.", "constraints-newest.txt": "6.1."}
PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[0-9][A-Za-z0-9.+!]*)")
# In halves, so that this file does not name them either.
REGISTRIES = [
    ".".join(halves)
    for halves in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("debian", "org"),
        ("docker", "io"),
        ("ghcr", "io"),
    )
]


def pins(file: str) -> dict[str, str]:
    """What a constraints file pins; a line that is neither a pin nor a comment fails."""
    found = {}
    for line in (ROOT / file).read_text().splitlines():
        if line.startswith("#"):
            continue
        pin = PIN.fullmatch(line)
        assert pin, f"{file}: {line!r} is not name==version"
        found[canonicalize_name(pin["name"])] = pin["version"]
    return found


def requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    return [Requirement(line) for lines in lists for line in lines]


def committed_texts() -> dict[str, str]:
    """The text files of the checkout: those in git, and those that could be added."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        assert os.environ.get("CI") != "true"
        pytest.skip("reads the list of files from git: clone the repository, apt-get install git")
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [name for name in names.split("\0") if name and (ROOT / name).is_file()]
    raw = {name: (ROOT / name).read_bytes() for name in files}
    return {name: content.decode() for name, content in raw.items() if b"\0" not in content}


@pytest.mark.parametrize("file", CONSTRAINTS)
def test_every_dependency_is_pinned_to_a_version_that_the_project_allows(file):
    versions = pins(file)
    for requirement in requirements():
        version = versions.get(canonicalize_name(requirement.name))
        assert version, f"{file} does not pin {requirement.name}"
        assert requirement.specifier.contains(version), f"{file}: {requirement} is not {version}"


@pytest.mark.parametrize(("file", "series"), CONSTRAINTS.items())
def test_each_constraints_file_is_for_its_own_django(file, series):
    assert pins(file)["django"].startswith(series)


@pytest.mark.parametrize("file", CONSTRAINTS)
def test_constraints_name_no_address(file):
    assert len(pins(file)) > len(requirements())
    assert not re.search(r"[/@\\]", (ROOT / file).read_text())


def test_every_make_target_says_what_it_does():
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    phony = re.search(r"^\.PHONY:(.*)$", makefile, re.MULTILINE)
    assert phony
    targets = set(re.findall(r"^([A-Za-z][\w-]*):(?!=)", makefile, re.MULTILINE))
    explained = set(re.findall(r"^([A-Za-z][\w-]*):(?!=).* ## \S", makefile, re.MULTILINE))
    assert {"run", "test", "check", "format"} <= targets
    assert targets == explained == set(phony[1].split())


def test_ci_runs_what_a_person_runs():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert {"make check", "make test"} <= set(script.read_text().splitlines())


def test_no_file_names_a_place_on_this_machine():
    places = [Path.home(), ROOT]
    # A checkout in "/app" proves nothing: a Dockerfile may say so too.
    names = [
        re.escape(str(place)) for place in places if place == Path.home() or len(place.parts) > 2
    ]
    place = re.compile(rf"(?<![\w.-])(?:{'|'.join(names)})(?![\w-])")
    for name, text in committed_texts().items():
        assert not place.search(text), f"{name} names {place.search(text)}"


def test_no_file_names_a_package_registry():
    for name, text in committed_texts().items():
        named = [registry for registry in REGISTRIES if registry in text]
        assert not named, f"{name} names {named}"


def test_no_django_signals_inside_the_project():
    sources = [
        path
        for package in ("koda", "runs", "streaming")
        for path in ROOT.glob(f"{package}/**/*.py")
    ]
    assert len(sources) > 20
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            used = {"django.dispatch", "django.db.models.signals"} & set(modules)
            assert not used, f"{path.relative_to(ROOT)} imports {used}"
