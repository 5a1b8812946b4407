"""A store as fsspec's packages have them: objects read by ranges and uploaded in chunks.

Unlike fsspec's own memory:// its files are fsspec's buffered ones, which lack what real files have
(a `readline` with a limit). Objects belong to the class, as a store outlives whoever asks it.
"""

from typing import Any, ClassVar

import fsspec
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem


class ObjectStore(AbstractFileSystem):  # type: ignore[misc]
    """objects://bucket/name; folders are beginnings of names."""

    protocol = "objects"
    cachable = False
    objects: ClassVar[dict[str, bytes]] = {}

    def _strip(self, path: str) -> str:
        found: str = self._strip_protocol(path)
        return found.strip("/")

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip(path)
        if path in self.objects:
            found = {path: "file"}
        else:
            below = [name for name in self.objects if name.startswith(f"{path}/" if path else "")]
            ends = {name: name.removeprefix(path).lstrip("/").partition("/") for name in below}
            found = {
                f"{path}/{first}".lstrip("/"): "directory" if slash else "file"
                for first, slash, _ in ends.values()
            }
        if not found:
            raise FileNotFoundError(path)
        told = [self._told(name, kind) for name, kind in found.items()]
        return told if detail else [one["name"] for one in told]

    def _told(self, name: str, kind: str) -> dict[str, Any]:
        data = self.objects.get(name, b"")
        return {"name": name, "type": kind, "size": len(data), "ETag": str(hash(data))}

    def _open(self, path: str, mode: str = "rb", **options: Any) -> "_Object":
        options.pop("autocommit", None)
        return _Object(self, self._strip(path), mode, **options)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        return self.objects[self._strip(path)][start:end]

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        self.objects[self._strip(path2)] = self.objects[self._strip(path1)]

    def _rm(self, path: str) -> None:
        del self.objects[self._strip(path)]

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """No folders are made."""


class _Object(AbstractBufferedFile):  # type: ignore[misc]
    def _initiate_upload(self) -> None:
        self.chunks: list[bytes] = []

    def _upload_chunk(self, final: bool = False) -> bool:
        self.chunks.append(self.buffer.getvalue())
        if final:
            self.fs.objects[self.path] = b"".join(self.chunks)
        return True


def register() -> None:
    """Make objects:// known to fsspec."""
    fsspec.register_implementation("objects", ObjectStore, clobber=True)
