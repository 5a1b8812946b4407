"""LibreOffice without a window: what it makes of a file in another format."""

import shutil
import subprocess
from pathlib import Path

SOFFICE = shutil.which("soffice")
_TIMEOUT_S = 300


def converted(source: Path, ending: str, folder: Path, *, reader: str | None = None) -> Path:
    """What LibreOffice makes of a file."""
    assert SOFFICE is not None
    profile = folder.parent / "profile"
    flags = [f"--infilter={reader}"] if reader else []
    subprocess.run(
        [
            *(SOFFICE, f"-env:UserInstallation={profile.as_uri()}", "--headless", *flags),
            *("--convert-to", ending, "--outdir", str(folder), str(source)),
        ],
        check=True,
        capture_output=True,
        timeout=_TIMEOUT_S,
    )
    made = folder / f"{source.stem}.{ending.partition(':')[0]}"
    assert made.stat().st_size > 0
    return made
