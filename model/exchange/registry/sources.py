"""Addresses of all registries, and the choice of the one that a name asks.

Owns the settings of their addresses, mirrors included, and the token of the hub. Does not own any
registry's layout.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from model.errors import ConfigError, shown
from model.exchange.registry.argos import ARGOS_URL, ARGOS_VARIABLE, Argos
from model.exchange.registry.cache import Cache
from model.exchange.registry.documents import Documents
from model.exchange.registry.firefox import FIREFOX_URL, FIREFOX_VARIABLE, Firefox
from model.exchange.registry.hub import HUB_URL, HUB_VARIABLE, Hub
from model.exchange.registry.listing import Listing, Offer, file_url
from model.exchange.registry.names import (
    ArchiveName,
    ArgosName,
    FirefoxName,
    HubName,
    LocalName,
    ModelName,
    OpusName,
)
from model.exchange.registry.retries import Retries
from model.exchange.registry.transport import Credential, Transport, origin_of
from model.exchange.registry.urls import OPUS_URL, OPUS_VARIABLE, find_archive, find_opus

TOKEN_VARIABLE = "HF_TOKEN"  # noqa: S105  # the variable's name
VARIABLES = (HUB_VARIABLE, FIREFOX_VARIABLE, ARGOS_VARIABLE, OPUS_VARIABLE)


class Offering(Protocol):
    """A registry that can say what it has for a direction."""

    def offers(self, source: str, target: str) -> tuple[Offer, ...]:
        """Models from one canonical tag to another.

        Raises:
            UnreachableError: The registry does not answer, and nothing of it was kept.
            RegistryError: Its answer cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The registries.

    Attributes:
        transport: Asks all of them.
        documents: Way to their answers.
        hub: Hugging Face's.
        firefox: Firefox Translations'.
        argos: Argos Translate's.
        opus_url: Where OPUS-MT's releases are.
    """

    transport: Transport
    documents: Documents
    hub: Hub
    firefox: Firefox
    argos: Argos
    opus_url: str

    def find(self, name: ModelName) -> Listing:
        """The listing that a name means.

        Raises:
            RegistryError: There is no such model, or its registry is not what it should be.
            ConfigError: The name is of a path here.
        """
        if isinstance(name, HubName):
            return self.hub.find(name)
        if isinstance(name, FirefoxName):
            return self.firefox.find(name)
        if isinstance(name, ArgosName):
            return self.argos.find(name)
        if isinstance(name, OpusName):
            return find_opus(name, self.opus_url, self.documents)
        if isinstance(name, ArchiveName):
            return find_archive(name, self.documents)
        assert isinstance(name, LocalName)
        raise ConfigError(f"{name.path} is here already; dragoman convert reads it")

    def offering(self) -> tuple[tuple[str, Offering], ...]:
        """The registries that can be asked what they have, by the names that people know."""
        return (
            ("Firefox Translations", self.firefox),
            ("Argos Translate", self.argos),
            ("Hugging Face", self.hub),
        )


def sources_of(environment: Mapping[str, str], cache: Cache, retries: Retries) -> Sources:
    """The registries that the environment names, or the usual ones.

    Raises:
        ConfigError: An address is none, or the token cannot be one.
    """
    bases = {
        variable: _base(variable, environment.get(variable) or default)
        for variable, default in zip(
            VARIABLES, (HUB_URL, FIREFOX_URL, ARGOS_URL, OPUS_URL), strict=True
        )
    }
    token = environment.get(TOKEN_VARIABLE, "").strip()
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise ConfigError(f"{TOKEN_VARIABLE} has signs that no token has")
    hub = bases[HUB_VARIABLE]
    may_know = urlsplit(hub).scheme != "file"
    credentials = (Credential(origin=origin_of(hub), token=token),) if token and may_know else ()
    transport = Transport(credentials)
    documents = Documents(transport=transport, cache=cache, retries=retries)
    return Sources(
        transport=transport,
        documents=documents,
        hub=Hub(hub, documents),
        firefox=Firefox(bases[FIREFOX_VARIABLE], documents),
        argos=Argos(bases[ARGOS_VARIABLE], documents),
        opus_url=bases[OPUS_VARIABLE],
    )


def _base(variable: str, value: str) -> str:
    """An address, or a folder here as one.

    Raises:
        ConfigError: It is neither.
    """
    if value.startswith(("/", "./", "../", "~")):
        return file_url(Path(value).expanduser())
    try:
        scheme, host, _ = origin_of(value)
    except ConfigError as error:
        raise ConfigError(f"{variable}: {error}") from error
    parts = urlsplit(value)
    if "@" in parts.netloc:
        raise ConfigError(f"{variable} has a user name or a password in it, which is not taken")
    is_file = scheme == "file" and parts.path.startswith("/")
    is_remote = scheme in {"http", "https"} and bool(host)
    if parts.query or parts.fragment or not (is_file or is_remote):
        raise ConfigError(
            f"{variable} is {shown(value)}; it must be http://…, https://…, file:///… or a folder"
        )
    return value
