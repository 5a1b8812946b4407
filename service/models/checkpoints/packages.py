"""Packages of Argos Translate that lie among the checkpoints, and the checkpoints made of them.

Owns which files are packages, where the checkpoint of each is, and whether that was made of the
package as it is now. The checkpoints are in a hidden folder beside the packages, so that who takes
a package away takes its checkpoint out of service too. The converting is
`service.models.checkpoints.conversion`.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from model.checkpoint.manifest import CONFIG_FILE

SUFFIX = ".argosmodel"
CONVERTED_FOLDER = ".converted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package.

    Attributes:
        file: Where it is.
    """

    file: Path

    @property
    def name(self) -> str:
        """Of its checkpoint: that of the file."""
        return self.file.stem

    @property
    def directory(self) -> Path:
        """Of its checkpoint, there or not."""
        return self.file.parent / CONVERTED_FOLDER / self.name

    @property
    def unpublished(self) -> Path:
        """Where its checkpoint is written before it takes the place of an earlier one."""
        return self.directory.with_name(f".{self.name}.new")

    def version(self) -> str:
        """What changes with the file.

        Raises:
            OSError: It cannot be looked at.
        """
        status = self.file.stat()
        return f"{status.st_size} {status.st_mtime_ns}"

    def is_converted(self) -> bool:
        """Whether its checkpoint was made of it as it is now."""
        try:
            is_same = self._record.read_text(encoding="ascii") == self.version()
            return is_same and (self.directory / CONFIG_FILE).is_file()
        except (OSError, ValueError):
            return False

    def publish(self, version: str) -> None:
        """Put what was written in the place of an earlier checkpoint, and note what it is made of.

        Args:
            version: Of the file that was read.

        Raises:
            OSError: The folder cannot be written.
        """
        earlier = self.directory.with_name(f".{self.name}.old")
        shutil.rmtree(earlier, ignore_errors=True)
        self._record.unlink(missing_ok=True)
        if self.directory.exists():
            self.directory.rename(earlier)
        self.unpublished.rename(self.directory)
        self._record.write_text(version, encoding="ascii")
        shutil.rmtree(earlier, ignore_errors=True)

    @property
    def _record(self) -> Path:
        return self.directory.with_name(f".{self.name}.source")


def find_packages(folder: Path) -> tuple[Package, ...]:
    """The packages in a folder, in order of their names; none where the folder is a checkpoint.

    One beside which a directory of its name lies was converted by hand, and one whose name begins
    with a dot is still being copied.

    Raises:
        OSError: The folder cannot be read.
    """
    if (folder / CONFIG_FILE).exists():
        return ()
    return tuple(
        Package(file=path)
        for path in sorted(folder.glob(f"[!.]*{SUFFIX}"))
        if path.is_file() and not path.with_suffix("").exists()
    )


def tidy(folder: Path) -> None:
    """Remove what was made of packages that are in a folder no more.

    Raises:
        OSError: It cannot be read.
    """
    names = [package.name for package in find_packages(folder)]
    kept = tuple(begin for name in names for begin in (f".{name}.", f"..{name}."))
    for path in (folder / CONVERTED_FOLDER).iterdir():
        if path.name in names or path.name.startswith(kept):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
