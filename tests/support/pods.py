"""The Deployment of `k8s/base` as flags of `docker run`: a pod without a cluster.

Owns the translation of the manifest. Running it is `support.containers`.
"""

from typing import Any

from support.manifests import container_of, environment_of, of_kind, pod_of, source

_BASE = source("base")
[DEPLOYMENT] = of_kind(_BASE, "Deployment")
SPEC = container_of(DEPLOYMENT)


def manifest_flags() -> list[str]:
    """The pod's security context and mounts, as flags of `docker run`."""
    pod, security = pod_of(DEPLOYMENT)["securityContext"], SPEC["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    volumes: list[dict[str, Any]] = SPEC["volumeMounts"]
    return [
        "--network=host",
        f"--user={pod['runAsUser']}:{pod['runAsGroup']}",
        "--read-only",
        "--security-opt=no-new-privileges",
        *(f"--cap-drop={name}" for name in security["capabilities"]["drop"]),
        *(f"--tmpfs={each['mountPath']}" for each in volumes),
        f"--memory={SPEC['resources']['limits']['memory'].removesuffix('i').lower()}",
    ]


def manifest_environment() -> dict[str, str]:
    """The ConfigMap; whoever runs it chooses the address."""
    environment = environment_of(_BASE, DEPLOYMENT)
    return {key: environment[key] for key in environment.keys() - {"DRAGOMAN_HOST"}}
