"""Folders of Hugging Face's transformers of families that cannot be converted: refused by name.

Owns the refusal; it is asked after all families that can be.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from model.errors import ForeignModelError, shown
from model.exchange.imports.huggingface.folder import model_type
from model.exchange.imports.imported import ImportOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownFamily:
    """The importer, if it were one, of every folder whose config.json says a family.

    Attributes:
        known: Families that can be converted, as config.json calls them.
        name: For people.
    """

    known: tuple[str, ...]
    name: str = "Hugging Face, other families"

    def recognises(self, source: Path) -> bool:
        """Whether config.json says a family."""
        return model_type(source) is not None

    def read(self, source: Path, options: ImportOptions) -> NoReturn:  # noqa: ARG002  # the protocol's
        """Nothing.

        Raises:
            ForeignModelError: Always, with the family and those that are known.
        """
        problem = f"config.json: model_type is {shown(model_type(source))}, which cannot be"
        raise ForeignModelError(source, [f"{problem} converted; {', '.join(self.known)} can"])
