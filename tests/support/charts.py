"""The Helm chart, rendered by helm: what the tests of `k8s/chart` and of the image read.

Owns finding helm, the machine's or the one that `.ci/manifests` fetched, and running it.
"""

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
import yaml

from support.manifests import K8S, Manifest, of_kind
from support.running_server import ROOT

CHART = K8S / "chart"
EVERYTHING = ROOT / "tests/k8s/values/everything.yaml"
_FETCHED = ROOT / "build/helm/helm"
HELM = shutil.which("helm") or (str(_FETCHED) if _FETCHED.is_file() else None)
needs_helm = pytest.mark.skipif(HELM is None, reason="there is no helm; .ci/helm fetches it")


def run_helm(*arguments: str) -> "subprocess.CompletedProcess[str]":
    assert HELM is not None
    return subprocess.run(
        [HELM, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


@cache
def _template(release: str, flags: tuple[str, ...]) -> str:
    done = run_helm("template", release, str(CHART), "--namespace=words", *flags)
    assert done.returncode == 0, done.stderr
    return done.stdout


def chart(
    *settings: str, release: str = "one", values: Sequence[Path] = (), files: Sequence[str] = ()
) -> list[Manifest]:
    """What a release is made of.

    Args:
        settings: As of `helm template --set`.
        release: Its name.
        values: Files of values.
        files: Settings whose values are files, as of `--set-file`.
    """
    flags = [f"--values={path}" for path in values]
    flags += [f"--set={setting}" for setting in settings]
    flags += [f"--set-file={setting}" for setting in files]
    text = _template(release, tuple(flags))
    return [each for each in yaml.safe_load_all(text) if each]


def notes(*settings: str) -> str:
    """What helm says after an install; no cluster is asked."""
    flags = [f"--set={setting}" for setting in settings]
    asked = ("install", "one", str(CHART), "--namespace=words", "--dry-run=client", *flags)
    done = run_helm(*asked)
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("\nNOTES:\n")[2]


def refusal(*settings: str, version: str = "1.35") -> str:
    """Why values are refused."""
    flags = [f"--set={setting}" for setting in settings]
    done = run_helm("template", "one", str(CHART), f"--kube-version={version}", *flags)
    assert done.returncode != 0, done.stdout
    return done.stderr


def named(documents: list[Manifest], kind: str, name: str) -> Manifest:
    """The one object of a kind and a name."""
    [found] = [
        each for each in documents if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    return found


def server_deployments(documents: list[Manifest]) -> list[Manifest]:
    """The Deployments that translate."""
    return [
        each
        for each in of_kind(documents, "Deployment")
        if each["metadata"]["labels"]["app.kubernetes.io/component"] == "server"
    ]
