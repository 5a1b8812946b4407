"""A real router before real servers, with different languages each, and what is asked of it."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from model.text.languages.tags import LanguagePair
from service.access.keys import ApiKey, new_key
from support.running_router import running_router
from support.running_server import POLL_SECONDS, RunningServer, running_server
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint

DE_EN = LanguagePair(source="de", target="en")
JA_EN = LanguagePair(source="ja", target="en")
KEY, DIGEST = new_key()
BEARER = {"authorization": f"Bearer {KEY}"}
DEEPL = {"authorization": f"DeepL-Auth-Key {KEY}"}
SERVERS = {
    "DRAGOMAN_API_KEYS": ApiKey(name="ann", sha256=DIGEST, is_admin=True).line(),
    "DRAGOMAN_KEY_REQUIRED": "false",
    "DRAGOMAN_TRUSTED_PROXIES": "127.0.0.1",
    "DRAGOMAN_DETECTION": "compact",
}
ROUTER = {"DRAGOMAN_DETECTION": "compact", "DRAGOMAN_TRUSTED_PROXIES": "127.0.0.1"}


@dataclass(slots=True, kw_only=True)
class Fleet:
    """A router, and the servers behind it by the names of their groups."""

    router: RunningServer
    servers: dict[str, RunningServer]
    folders: dict[str, Path]

    def num_passed(self, group: str, status: int = 200) -> float:
        """Requests that a group has answered like this."""
        name = f"dragoman_router_passed_total{{group={group},status={status}}}"
        return self.router.metrics().get(name, 0.0)


def wait(is_so: Callable[[], bool]) -> None:
    """Ask until it is so; pytest's timeout is the bound."""
    while not is_so():
        time.sleep(POLL_SECONDS)


def health(router: RunningServer) -> dict[str, dict[str, object]]:
    """What a router says of each group, by name."""
    with router.client() as client:
        groups = client.get("/v1/health").json()["groups"]
    return {group["name"]: group for group in groups}


def wait_up(router: RunningServer, *names: str) -> None:
    """Ask until these groups are up."""
    wait(lambda: {name for name, one in health(router).items() if one["is_up"]} >= {*names})


@contextmanager
def running_fleet(folder: Path) -> Iterator[Fleet]:
    """`west` de → en and en ↔ zh-Hans, `east` ja → en; gone when the block is left."""
    served = {
        "west": (("german", (DE_EN,), 15), ("chinese", (EN_ZH, ZH_EN), 12)),
        "east": (("japanese", (JA_EN,), 18),),
    }
    folders = {}
    for group, checkpoints in served.items():
        folders[group] = folder / group
        folders[group].mkdir()
        for name, pairs, seed in checkpoints:
            write_tiny_checkpoint(folders[group] / name, name=name, pairs=pairs, seed=seed)
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(running_server(path, folder / f"{name}.log", **SERVERS))
            for name, path in folders.items()
        }
        urls = {name: server.url for name, server in servers.items()}
        router = stack.enter_context(running_router(urls, folder / "router.log", **ROUTER))
        wait_up(router, *urls)
        yield Fleet(router=router, servers=servers, folders=folders)
