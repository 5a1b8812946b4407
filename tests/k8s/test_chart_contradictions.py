"""Values of the chart that contradict each other, and would stop a server or go unused."""

import pytest

from support.charts import chart, needs_helm, refusal

pytestmark = needs_helm

TOTAL = "settings.DRAGOMAN_DOCUMENTS_TOTAL_BYTES"
ROUTER = ("router.enabled=true", "groups.a.replicas=1", "groups.a.tmpSize=2Gi")


def test_uploads_have_to_fit_into_the_tmp_of_the_router_wherever_groups_keep_documents() -> None:
    told = refusal(*ROUTER, f"{TOTAL}=1G")
    words = f"tmpSize is 256Mi; it must be at least {TOTAL} (1G), for the router's pods"
    assert f"- {words}\n" in told
    elsewhere = "settings.DRAGOMAN_DOCUMENTS_FOLDER=/var/cache/dragoman/documents"
    told = refusal(*ROUTER, f"{TOTAL}=1G", elsewhere, "packed.size=2Gi")
    assert f"- {words}\n" in told
    assert chart(*ROUTER, f"{TOTAL}=1G", "tmpSize=1Gi")
    assert chart(*ROUTER, "tmpSize=1Mi", "settings.DRAGOMAN_DOCUMENTS=false")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            ("router.enabled=true", "groups.router.replicas=1"),
            "groups.router has the name of the router's own objects",
        ),
        (
            ("redis.bundled.enabled=true", "groups.redis.replicas=1"),
            "groups.redis has the name of the small Redis's own objects",
        ),
        (
            ("groups.a.replicas=1", "groups.a-pods.replicas=1"),
            "groups.a-pods has the name of the Service of each pod of groups.a",
        ),
    ],
)
def test_a_group_whose_objects_would_replace_others_is_refused(
    settings: tuple[str, ...], words: str
) -> None:
    assert f"- {words}\n" in refusal(*settings)


def test_a_name_is_free_where_nothing_else_has_it() -> None:
    assert chart("groups.redis.replicas=1", "groups.router.replicas=1", "groups.b-pods.replicas=1")
