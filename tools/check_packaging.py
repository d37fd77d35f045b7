#!/usr/bin/env python3
"""Checks packaging/: the Helm chart, the manifests that are made from it, and the Compose files.

    python3 tools/check_packaging.py            # the last line says how many checks passed
    python3 tools/check_packaging.py --write    # makes packaging/kubernetes*.yaml again

The chart is linted and rendered by Helm's own library (`pip install helm-python-sdk`, 75 MB), manifests are compared with the
schemas of Kubernetes (`pip install kubernetes-validate`), Compose files are read by docker-compose if it is installed, and the
metric of the autoscaler has to be one that the dashboard shows. No cluster, daemon or network is needed.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import kubernetes_validate
import yaml
from helm_python import HelmError
from helm_python.chart import Chart, lint

ROOT = pathlib.Path(__file__).parent.parent
PACKAGING = ROOT / "packaging"
CHART = PACKAGING / "helm" / "fovea"
KUBERNETES = ("1.30.0", "1.34.0")  # the oldest and the newest that the schemas are compared for

GPU = {"gpus": 1, "image": {"repository": "fovea-cuda"}, "autoscaling": {"enabled": True}}
MANIFESTS = {
    "kubernetes.yaml": ("The server in Kubernetes, on CPUs", {}),
    "kubernetes-gpu.yaml": ("The server in Kubernetes, with a GPU for each replica and as many replicas as the queue asks for", GPU),
}
HEAD = """# {title}:
#   kubectl apply -f packaging/{name}
# Before that: a claim `fovea-model` with the checkpoint, and a secret `fovea-keys` whose file `keys`
# has one API key per line; a file without one starts no server. Admin routes are off: they need a
# key, FOVEA_ADMIN_API_KEY. Made from packaging/helm/fovea by tools/check_packaging.py --write.
"""
# What a release may set, beside the defaults and GPU.
OTHERS = [
    {"apiKeySecret": "", "replicas": 0, "imagePullSecrets": [{"name": "a"}], "args": ["--port=8000", "a \"b\""]},
    {"gpus": 8, "env": {"FOVEA_A": "1", "FOVEA_B": "x: y"}, "model": {"subPath": "a/b"}, "startupTimeout": 7},
    {"nodeSelector": {"gpu": "h200"}, "tolerations": [{"key": "gpu", "operator": "Exists"}],
     "affinity": {"podAntiAffinity": {}}, "maxUnavailable": "50%", "serviceMonitor": {"enabled": True},
     "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]},
    {"resources": {}, "service": {"type": "LoadBalancer", "port": 8080}, "autoscaling": {"enabled": True, "queueItems": 1}},
]
REFUSED = [{"replica": 3}, {"gpus": -1}, {"gpus": "one"}, {"image": {"name": "x"}}, {"env": {"A": 1}}]


def rendered(values):
    """The manifests of a release, in the order of their templates."""
    with Chart.load(str(CHART)) as chart:
        files = chart.render(values, name="fovea", namespace="default")
    return [text.strip() for name, text in sorted(files.items()) if name.endswith(".yaml") and text.strip()]


def manifest(name):
    """The text of a file that is applied without Helm."""
    title, values = MANIFESTS[name]
    by_helm = ("helm.sh/chart:", "app.kubernetes.io/managed-by:")
    documents = ["\n".join(line for line in text.splitlines() if not line.strip().startswith(by_helm)) for text in rendered(values)]
    return HEAD.format(title=title, name=name) + "\n---\n".join(documents) + "\n"


def check_lint():
    for values in ({}, GPU, *OTHERS):
        report = lint(str(CHART), values, strict=True)
        bad = [message for message in report["messages"] if message["severity"] > 1] + report["errors"]
        assert not bad, bad


def check_schemas():
    for values in ({}, GPU, *OTHERS):
        for document in (yaml.safe_load(text) for text in rendered(values)):
            if document["apiVersion"].startswith("monitoring.coreos.com"):
                continue  # of the Prometheus operator
            for version in KUBERNETES:
                kubernetes_validate.validate(document, version, strict=True)


def check_refusals():
    for values in REFUSED:
        with Chart.load(str(CHART)) as chart:
            try:
                chart.validate_schema(values)
            except HelmError:
                continue
        raise AssertionError(f"{values} was taken")


def check_manifests():
    for name in MANIFESTS:
        assert (PACKAGING / name).read_text() == manifest(name), f"packaging/{name}: make it again with --write"


def check_parts():
    """What a deployment with GPUs must have, read from what Helm made."""
    parts = {document["kind"]: document["spec"] for document in map(yaml.safe_load, rendered(GPU))}
    pod = parts["Deployment"]["template"]["spec"]
    server = pod["containers"][0]
    assert server["resources"]["limits"]["nvidia.com/gpu"] == 1 and "--device=cuda:0" in server["args"]
    assert [server[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")] == ["/readyz", "/readyz", "/livez"]
    assert pod["terminationGracePeriodSeconds"] > 5 + 30
    assert "replicas" not in parts["Deployment"]  # or each upgrade would undo the autoscaler
    for other in ("PodDisruptionBudget", "Deployment"):
        assert parts[other]["selector"]["matchLabels"].items() <= parts["Deployment"]["template"]["metadata"]["labels"].items()
    metric = parts["HorizontalPodAutoscaler"]["metrics"][0]["pods"]["metric"]["name"]
    assert metric in (PACKAGING / "grafana.json").read_text(), metric


def check_compose():
    program = shutil.which("docker-compose")
    if program is None:
        return "no docker-compose"
    folder = PACKAGING / "compose"
    for files in (["compose.yaml"], ["compose.yaml", "gpu.yaml"]):
        command = [program, *(word for file in files for word in ("-f", str(folder / file))), "config"]
        done = subprocess.run(command, env=os.environ | {"FOVEA_MODEL": "/m"}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        for mounted in (volume.split(":")[0] for service in yaml.safe_load(done.stdout)["services"].values()
                        for volume in service.get("volumes", [])):
            assert not mounted.startswith(str(PACKAGING)) or pathlib.Path(mounted).is_file(), mounted
    for file in (PACKAGING / "grafana.json",):
        json.loads(file.read_text())
    return None


def main():
    if "--write" in sys.argv[1:]:
        for name in MANIFESTS:
            (PACKAGING / name).write_text(manifest(name))
    passed = failed = 0
    for check in (check_lint, check_schemas, check_refusals, check_manifests, check_parts, check_compose):
        try:
            skipped = check()
            print("skipped" if skipped else "ok", check.__name__, skipped or "")
            passed += not skipped
        except Exception as error:  # pylint: disable=broad-except
            print("FAILED", check.__name__, error)
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
