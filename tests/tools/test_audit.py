"""What counts as audited, by outputs that pip-audit 2.10.1 printed."""

import sys
from pathlib import Path

import pytest

from tools.audit import AuditError, installed, judge, main, normalised, read_pins, run, unpinned

PINS = {"example-hole": "1.0", "example-fine": "2.0"}

# Without its network: status 0, "No known vulnerabilities found".
SKIPPED = (
    '{"dependencies": [{"name": "example-hole", "skip_reason": "Dependency not found on PyPI and'
    ' could not be audited: example-hole (1.0)"}, {"name": "example-fine", "skip_reason":'
    ' "Dependency not found on PyPI and could not be audited: example-fine (2.0)"}], "fixes": []}'
)
# From an advisory service on loopback that knows one made-up hole: status 1.
VULNERABLE = (
    '{"dependencies": [{"name": "example-hole", "version": "1.0", "vulns": [{"id":'
    ' "CVE-2026-0001", "fix_versions": ["1.1"], "aliases": ["EXAMPLE-2026-1"], "description":'
    ' "A made-up hole."}]}, {"name": "example-fine", "version": "2.0", "vulns": []}], "fixes": []}'
)
CLEAN = (
    '{"dependencies": [{"name": "example-hole", "version": "1.0", "vulns": []},'
    ' {"name": "example-fine", "version": "2.0", "vulns": []}], "fixes": []}'
)


def test_packages_that_were_skipped_fail() -> None:
    complaints = judge(SKIPPED, PINS)
    assert [complaint.split(":")[0] for complaint in complaints] == [
        "example-hole was skipped",
        "example-fine was skipped",
    ]


def test_a_vulnerable_package_fails_and_what_mends_it_is_said() -> None:
    assert judge(VULNERABLE, PINS) == ["example-hole 1.0: CVE-2026-0001, fixed in 1.1"]


def test_only_a_whole_and_clean_audit_passes() -> None:
    assert judge(CLEAN, PINS) == []
    assert judge(CLEAN, PINS | {"another": "3"}) == ["another 3 was left out"]
    assert judge(CLEAN, PINS | {"example-fine": "2.1"}) == [
        "example-fine was audited as 2.0, but 2.1 is pinned"
    ]
    assert judge('{"dependencies": [], "fixes": []}', PINS) == [
        "example-fine 2.0 was left out",
        "example-hole 1.0 was left out",
    ]


@pytest.mark.parametrize(
    "output",
    [
        "",
        "No known vulnerabilities found",
        "[]",
        "{}",
        '{"dependencies": [{}]}',
        '{"dependencies": [{"name": "a"}]}',
        '{"dependencies": [{"name": "a", "version": "1", "vulns": null}]}',
        '{"dependencies": [{"name": "a", "version": "1", "vulns": [{}]}]}',
        '{"dependencies": ["a"]}',
    ],
)
def test_another_shape_of_output_fails(output: str) -> None:
    with pytest.raises(AuditError, match="unknown shape"):
        judge(output, PINS)


def test_an_installed_package_without_its_pin_fails() -> None:
    pins = {"torch": "2.13.0", "limits": "5.8.0"}
    found = {"torch": "2.13.0+cpu", "limits": "5.7", "six": "1", "pip": "1", "dragoman": "0.1.0"}
    assert unpinned(pins, found) == [
        "limits 5.7 is installed, but 5.8.0 is pinned",
        "six 1 is installed, but nothing is pinned",
    ]
    assert "pytest" in installed()


def test_pins_are_read_or_refused() -> None:
    assert read_pins("# why\n\nPip_Api==1.0\na.b==2.0+c\n") == {"pip-api": "1.0", "a-b": "2.0+c"}
    for text in ("", "# nothing\n", "a>=1\n", "a\n", "a==1 ; python_version > '3'\n"):
        with pytest.raises(AuditError, match="no pin"):
            read_pins(text)


def test_our_own_pins_can_be_audited() -> None:
    text = (Path(__file__).parents[2] / "constraints.txt").read_text()
    assert read_pins(text)[normalised("PyYAML")]


@pytest.mark.parametrize(
    "command",
    [
        ["/nowhere/pip-audit"],
        [sys.executable, "-c", "raise SystemExit(1)"],
        [sys.executable, "-c", "print('{}'); raise SystemExit(2)"],
    ],
)
def test_a_tool_that_fails_fails_the_audit(tmp_path: Path, command: list[str]) -> None:
    with pytest.raises(AuditError, match="pip-audit"):
        run(command, tmp_path / "constraints.txt")


def test_the_exit_status_is_0_only_for_a_clean_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("example-hole==1.0\nexample-fine==2.0\n")
    monkeypatch.setattr("tools.audit.installed", lambda: PINS)
    for output, status in ((CLEAN, 0), (SKIPPED, 1), (VULNERABLE, 1), ("", 1)):
        replay = tmp_path / "replay.py"
        replay.write_text(f"print({output!r})")
        assert main([str(constraints), sys.executable, str(replay)]) == status
        printed = capsys.readouterr()
        assert ("the audit FAILED" in printed.err) == (status == 1)
