"""Containers of pods, as those of the Deployment of `k8s/base`, as flags of `docker run`.

Owns the translation of manifests. Running them is `support.containers`.
"""

from collections.abc import Mapping
from pathlib import Path

from support.manifests import Manifest, container_of, environment_of, of_kind, pod_of, source

_BASE = source("base")
[DEPLOYMENT] = of_kind(_BASE, "Deployment")
SPEC = container_of(DEPLOYMENT)


def container_flags(
    pod: Manifest, container: Manifest, folders: Mapping[str, Path] | None = None
) -> list[str]:
    """A pod's security context and a container's own, mounts and limit, as flags of `docker run`.

    Args:
        pod: Its specification.
        container: One of its containers.
        folders: What stands for its volumes, by their names; others are empty and in memory.
    """
    user, security = pod["securityContext"], container["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    mounts = []
    for each in container["volumeMounts"]:
        path = each["mountPath"]
        folder = (folders or {}).get(each["name"])
        access = ":ro" if each.get("readOnly") else ""
        mounts.append(f"--volume={folder}:{path}{access}" if folder else f"--tmpfs={path}")
    return [
        "--network=host",
        f"--user={user['runAsUser']}:{user['runAsGroup']}",
        "--read-only",
        "--security-opt=no-new-privileges",
        *(f"--cap-drop={name}" for name in security["capabilities"]["drop"]),
        *mounts,
        f"--memory={container['resources']['limits']['memory'].removesuffix('i').lower()}",
    ]


def manifest_flags() -> list[str]:
    """Those of the base's pod."""
    return container_flags(pod_of(DEPLOYMENT), SPEC)


def manifest_environment() -> dict[str, str]:
    """The ConfigMap; whoever runs it chooses the address."""
    environment = environment_of(_BASE, DEPLOYMENT)
    return {key: environment[key] for key in environment.keys() - {"DRAGOMAN_HOST"}}
