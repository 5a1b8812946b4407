"""Every example of docs/api.md, run as it stands against a real server, by curl."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.running_server import ROOT, RunningServer

PAGE = (ROOT / "docs/api.md").read_text(encoding="utf-8")
FENCED = "\n".join(re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
EXAMPLES = re.findall(r"^curl .*?(?=\n\n|\n?\Z|\ncurl )", FENCED, re.MULTILINE | re.DOTALL)


def test_examples_are_all_in_fences() -> None:
    assert len(EXAMPLES) == len(re.findall(r"^curl ", PAGE, re.MULTILINE)) > 8


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.split()[2])
def test_an_example_is_answered(server: RunningServer, tmp_path: Path, example: str) -> None:
    (tmp_path / ".curlrc").write_text('fail-with-body\nshow-error\nnoproxy = "*"\n')
    done = subprocess.run(
        ["sh", "-c", example.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")],
        env=os.environ | {"CURL_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if "/stream" in example:
        assert done.stdout.rpartition("event: ")[2].startswith("result\n")
    else:
        assert json.loads(done.stdout)
