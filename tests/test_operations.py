"""docs/operations.md says what is: every setting, every metric, proxies and environment."""

from __future__ import annotations

import ast
import re
from collections import Counter

from prometheus_client import REGISTRY

from koda import reference
from runs import metrics as runs_metrics
from streaming import metrics as streaming_metrics
from tests.live_databases import ROOT
from tests.test_deployment import SERVICES
from tests.test_security import PRODUCTION

TEXT = (ROOT / "docs" / "operations.md").read_text()
VARIABLE = re.compile(r"(DJANGO|DATABASE|REDIS|KODA|OPENAI)_[A-Z][A-Z_]*")
NOT_READ_FROM_THE_ENVIRONMENT = {"DJANGO_SETTINGS_MODULE", "KODA_PUBLISH"}


def test_the_table_of_settings_is_that_of_the_code():
    wanted = reference.settings_table()
    assert wanted in TEXT, f"run `python -m koda.reference` and take over its table:\n{wanted}"


def variables_read() -> set[str]:
    """Names of variables that the code has as whole strings."""
    sources = [*ROOT.glob("koda/*.py"), *ROOT.glob("koda/management/**/*.py")]
    sources += [*ROOT.glob("runs/**/*.py"), *ROOT.glob("streaming/**/*.py")]
    sources.remove(ROOT / "koda" / "reference.py")
    nodes = [node for path in sources for node in ast.walk(ast.parse(path.read_text()))]
    strings = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return {text for text in strings if isinstance(text, str) and VARIABLE.fullmatch(text)}


def test_the_table_has_every_variable_that_the_code_reads_and_no_other():
    table = {variable.name for variable in reference.variables()}
    read = variables_read() - NOT_READ_FROM_THE_ENVIRONMENT
    assert read <= table
    assert {variable.name for variable in reference.ENVIRONMENT} <= read
    assert all(variable.default and variable.meaning for variable in reference.variables())
    assert max(Counter(variable.name for variable in reference.variables()).values()) == 1


def test_every_metric_is_explained_and_no_other():
    assert {runs_metrics, streaming_metrics}
    families = [family for family in REGISTRY.collect() if family.name.startswith("koda_")]
    ours = {f"{f.name}_total" if f.type == "counter" else f.name for f in families}
    explained = re.findall(r"^\| `(koda_\w+)`", TEXT, re.MULTILINE)
    assert len(explained) == len(set(explained))
    assert set(explained) == ours


def test_the_documented_production_environment_is_the_one_that_is_tested():
    block = TEXT.split("## The environment of production")[1].split("```")[1]
    documented = set(re.findall(r"^([A-Z_]+)=", block, re.MULTILINE))
    assert documented == {name for name in PRODUCTION if not re.match("OPENAI_|KODA_", name)}


def test_the_proxies_lead_to_the_port_that_the_compose_file_opens():
    [port] = SERVICES["gateway"]["ports"]
    address = port.rpartition(":")[0]
    for block in ("nginx", "caddy"):
        assert address in TEXT.split(f"```{block}")[1].split("```")[0]
