"""Environment variables that begin with `DRAGOMAN_`: the known names, and the port.

Owns the list of names that the project reads and the refusal of any other one: a misspelt name
would leave a setting at its default, and with `DRAGOMAN_API_KEYS_FILE` a server open. What the
settings mean is `service.settings`. Standard library only: `service.probe` imports it.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

ENVIRONMENT_PREFIX = "DRAGOMAN_"

_INTERNAL = frozenset(
    {
        "DRAGOMAN_BUILD_FLAGS",  # tests/containers
        "DRAGOMAN_CLIENTS",  # tests/clients
        "DRAGOMAN_CRDS",  # tests/k8s
        "DRAGOMAN_IMAGE",  # tests/containers
        "DRAGOMAN_KERNELS",  # setup.py
        "DRAGOMAN_MANIFESTS",  # tests/k8s
        "DRAGOMAN_RELEASES",  # .github/workflows/release.yml
        "DRAGOMAN_REVISION",  # the image, for reports of trainings
        "DRAGOMAN_TEST_PORT",  # tests/containers
        "DRAGOMAN_WITHOUT_KERNELS",  # setup.py
    }
)
"""Variables that build and test the project: nobody who misspells a setting means one."""

OTHER_READERS = _INTERNAL | frozenset(
    {
        "DRAGOMAN_ARGOS_URL",  # dragoman pull
        "DRAGOMAN_CACHE",  # dragoman pull, packed weights
        "DRAGOMAN_CHECKPOINT_DIR",  # docker-compose.yml
        "DRAGOMAN_DATA",  # dragoman train, docker-compose.yml, benchmarks
        "DRAGOMAN_FIREFOX_URL",  # dragoman pull
        "DRAGOMAN_GPU_MEMORY",  # docker-compose.yml
        "DRAGOMAN_HUB_URL",  # dragoman pull
        "DRAGOMAN_ISA",  # model.native.kernels
        "DRAGOMAN_MEMORY",  # docker-compose.yml
        "DRAGOMAN_OPUS_URL",  # dragoman pull
        "DRAGOMAN_PUBLISH",  # docker-compose.yml
        "DRAGOMAN_TRAIN_MEMORY",  # docker-compose.yml
    }
)
"""Variables of the project that are no settings of the server."""

_LIKENESS = 0.6
_LINKED = re.compile(
    r"DRAGOMAN_([A-Z0-9_]+_)?"
    r"(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_LINKED_PORT = re.compile(r"DRAGOMAN_([A-Z0-9_]+_)?PORT")
_LINKED_URL = re.compile(r"(tcp|udp|sctp)://.*")


def is_service_link(name: str, value: str) -> bool:
    """Whether Kubernetes has set a variable for a Service called `dragoman` or `dragoman-…`.

    It does so in every pod of the namespace that does not forbid it, and `DRAGOMAN_PORT` is then
    `tcp://…`.
    """
    if _LINKED.fullmatch(name):
        return True
    return bool(_LINKED_PORT.fullmatch(name) and _LINKED_URL.fullmatch(value))


def port_of(value: str, *, default: int) -> int:
    """The port that `DRAGOMAN_PORT` gives; `default` if it is empty or Kubernetes' own.

    Raises:
        ValueError: It is no number.
    """
    if not value or is_service_link("DRAGOMAN_PORT", value):
        return default
    return int(value)


def unknown_variables(environment: Mapping[str, str], settings: Iterable[str]) -> list[str]:
    """Complaints about `DRAGOMAN_…` variables that nothing reads, each with the nearest name.

    Args:
        environment: All variables.
        settings: Names of the server's settings, without the prefix and in any case.
    """
    others = {name.removeprefix(ENVIRONMENT_PREFIX) for name in OTHER_READERS}
    known = sorted(others | {name.upper() for name in settings})
    internal = {name.removeprefix(ENVIRONMENT_PREFIX) for name in _INTERNAL}
    meant = [name for name in known if name not in internal]
    complaints = []
    for given, value in sorted(environment.items()):
        name = given.upper()  # settings are read in any case
        stem = name.removeprefix(ENVIRONMENT_PREFIX)
        if stem == name or stem in known or is_service_link(name, value):
            continue
        near = get_close_matches(stem, meant, n=1, cutoff=_LIKENESS)
        hint = f"; the nearest name is {ENVIRONMENT_PREFIX}{near[0]}" if near else ""
        complaints.append(f"{given} is no setting{hint}")
    return complaints
