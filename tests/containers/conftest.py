"""Tests of the built image. They need a Docker engine and the image that DRAGOMAN_IMAGE names;
`.ci/containers` builds it and names it. Without a name none of them is collected.
"""

import os
from collections.abc import Iterator

import pytest

from support.containers import CONFINED, IMAGE_VARIABLE, Container, serving

if IMAGE_VARIABLE not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def image() -> str:
    """The image under test."""
    return os.environ[IMAGE_VARIABLE]


@pytest.fixture(scope="module")
def container(image: str) -> Iterator[Container]:
    """One that serves the checkpoint in the image, confined, until the module is through."""
    with serving(image, *CONFINED) as container:
        container.wait_status("/readyz", 200)
        yield container
