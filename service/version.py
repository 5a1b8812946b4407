"""Version of the installed distribution."""

from importlib.metadata import PackageNotFoundError, version


def distribution_version() -> str:
    """The installed version of Dragoman, "unknown" from a bare source tree."""
    try:
        return version("dragoman")
    except PackageNotFoundError:
        return "unknown"
