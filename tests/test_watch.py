"""Dashboards and alerts: every metric they ask for exists, each alert fires and has a line in the runbook, and a real
Prometheus scrapes a real trainer as they expect.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from waiting import wait_for

from streamtrain.telemetry.predictor import PredictorMeters
from streamtrain.telemetry.serving import ServingTable
from streamtrain.telemetry.trainer import TrainerMeters
from tests.docs.page import free_port
from tests.e2e.harness import LiveJob

ROOT = Path(__file__).resolve().parents[1]
PROMETHEUS, GRAFANA = ROOT / "deploy" / "prometheus", ROOT / "deploy" / "grafana" / "dashboards"
DASHBOARDS = sorted(GRAFANA.glob("*.json"))
RULES: list[dict[str, Any]] = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"][0]["rules"]
METRIC = re.compile(r"\bstreamtrain_\w+")
OF_ROLE = re.compile(r'\b(streamtrain_\w+)\{[^}]*role="(\w+)"')


@cache
def known(role: str = "") -> set[str]:
    """Every series our processes have; of a role: its."""
    registries = {
        "trainer": TrainerMeters("job", 4).registry, "predictor": PredictorMeters("job").registry,
        "serve": ServingTable(["job"], 1).registry(),
    }  # fmt: skip
    families = [family for name, each in registries.items() if role in ("", name) for family in each.collect()]
    return {f"{family.name}{suffix}" for family in families for suffix in ("", *SUFFIXES[family.type])}


SUFFIXES = {
    "counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "info": ("_info",), "gauge": (), "unknown": (),
}  # fmt: skip


def expressions(dashboard: Any) -> list[str]:
    """Of panels, variables and annotations."""
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    found += [each["definition"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
    return found + [each["expr"] for each in dashboard["annotations"]["list"]]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_asks_for_what_there_is(path: Path) -> None:
    dashboard = json.loads(path.read_text())
    asked = {name for text in expressions(dashboard) for name in METRIC.findall(text)}
    assert asked and asked - known() == set()
    for name, role in (found for text in expressions(dashboard) for found in OF_ROLE.findall(text)):
        assert name in known(role), role
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    cells = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]  # fmt: skip
    assert len(set(cells)) == len(cells) and all(0 <= x < 24 for x, _ in cells)  # none lies over another
    variables = {each["name"] for each in dashboard["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]\w*)", path.read_text())) <= variables
    assert dashboard["uid"] not in [json.loads(other.read_text())["uid"] for other in DASHBOARDS if other != path]


@pytest.mark.full
@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_is_one_to_grafanas_schema(path: Path) -> None:
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    found = models.Dashboard.from_json(json.loads(path.read_text()))
    assert found.uid == f"streamtrain-{path.stem}" and all(panel.targets for panel in found.panels)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_there_is_is_tried_and_in_the_runbook(rule: dict[str, Any]) -> None:
    assert set(METRIC.findall(rule["expr"])) <= known()
    assert rule["labels"]["severity"] in ("warning", "critical") and rule["annotations"]["description"]
    tried = yaml.safe_load((PROMETHEUS / "alerts.test.yml").read_text())["tests"]
    asked = [each for test in tried for each in test["alert_rule_test"] if each["alertname"] == rule["alert"]]
    assert any(each["exp_alerts"] for each in asked)
    runbook = (ROOT / "docs" / "operate.md").read_text()
    assert re.search(rf"^\| `{rule['alert']}` \| .+ \| .+ \|$", runbook, re.MULTILINE)


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here (Debian's package prometheus)")
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "rules", "alerts.yml"],
        ["check", "config", "--syntax-only", "prometheus.yml"],  # the file of serve's token is in the container alone
        ["test", "rules", "alerts.test.yml"],
    ],
    ids=" ".join,
)
def test_promtool_accepts_them(arguments: list[str]) -> None:
    done = subprocess.run([tool("promtool"), *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
def test_a_real_prometheus_scrapes_a_real_trainer_and_server(kafka: Any, tmp_path: Path) -> None:
    prometheus = tool("prometheus")
    job = LiveJob(kafka, tmp_path)
    job.produce(1000)
    trainer = job.start("train", "--metrics-port", "0")
    metrics = wait_for(lambda: re.search(r"are served.*port=(\d+)", trainer.errors()))[1]
    (tmp_path / "token").write_text("a-token-of-ours")
    serve = job.start("serve", "--port", "0", "--host", "0.0.0.0", "--token-file", str(tmp_path / "token"))
    assert serve.process.stdout is not None
    served = json.loads(serve.process.stdout.readline())["port"]
    port = free_port()
    config = (PROMETHEUS / "prometheus.yml").read_text()
    config = config.replace("train:9400", f"127.0.0.1:{metrics}").replace("scrape_interval: 5s", "scrape_interval: 1s")
    config = config.replace("serve:8080", f"127.0.0.1:{served}").replace("/run/streamtrain-token", "token")
    (tmp_path / "prometheus.yml").write_text(config)
    shutil.copy(PROMETHEUS / "alerts.yml", tmp_path)
    with (tmp_path / "prometheus.log").open("wb") as log:
        running = subprocess.Popen(
            [prometheus, f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}"], stderr=log, stdout=log,
        )  # fmt: skip
    try:
        asked = f'streamtrain_snapshot_version{{role="trainer",job="{job.name}"}} > 0'
        wait_for(lambda: answer(port, asked))
        wait_for(lambda: answer(port, f'streamtrain_ready{{role="serve",job="{job.name}"}} == 1'))
        for path in DASHBOARDS:
            for text in expressions(json.loads(path.read_text())):
                if not text.startswith("label_values"):
                    answer(port, text.replace("$job", job.name))  # it is PromQL
        assert answer(port, f'streamtrain_quality{{job="{job.name}",name="log_loss",span="total"}}')
    finally:
        running.kill()
        running.wait(60)
        serve.process.kill()
        trainer.process.kill()


def answer(port: int, expression: str) -> Any:
    """Of an instant query; [] where the server is not up yet. Raises where it is no query."""
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    try:
        with urllib.request.urlopen(url, timeout=30) as found:
            return json.load(found)["data"]["result"]
    except urllib.error.HTTPError as error:
        assert error.code != 400, (expression, error.read())
        return []
    except urllib.error.URLError:
        return []
