import pytest

from service.telemetry.route_names import UNMATCHED_ROUTE, RouteNames

NAMES = RouteNames(["/translate", "/v1/models", "/v1/models/{name:path}/load"])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/translate", "/translate"),
        ("/v1/models", "/v1/models"),
        ("/v1/models/small/load", "/v1/models/{name}/load"),
        ("/v1/models/a/b c/load", "/v1/models/{name}/load"),
        ("/v1/models/small", UNMATCHED_ROUTE),
        ("/v1/models/small/load/", UNMATCHED_ROUTE),
        ("/translate/", UNMATCHED_ROUTE),
        ("", UNMATCHED_ROUTE),
    ],
)
def test_a_path_has_the_name_of_its_template(path: str, name: str) -> None:
    assert NAMES.of(path) == name
