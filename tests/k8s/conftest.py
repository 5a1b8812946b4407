"""The chart, rendered once for each file of tests."""

import pytest

from support.charts import EVERYTHING, chart
from support.manifests import Manifest


@pytest.fixture(scope="module")
def plain() -> list[Manifest]:
    return chart()


@pytest.fixture(scope="module")
def everything() -> list[Manifest]:
    return chart(values=[EVERYTHING])
