"""The script installs Chromium where it can; elsewhere one line says that the browser test is not run."""

import pathlib
import shutil
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).parents[1] / ".ci" / "browser"
NOT_TESTED = "The report is not tested in a browser: Chromium is not installed, and "
ROOT, NOBODY = "echo 0", "echo 1000"
WORKS, FAILS = 'echo "$@" >> "$LOG"', 'echo "$@" >> "$LOG"; exit 100'
NO_INSTALL = 'echo "$@" >> "$LOG"; case "$*" in *install*) exit 100;; esac'


def attempt(folder, **commands):
    """Runs the script with only these commands; returns (exit code, output, arguments of apt-get)."""
    for name in ("sh", "timeout", "env"):
        (folder / name).symlink_to(shutil.which(name))
    for name, body in commands.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!{shutil.which('sh')}\n{body}\n")
        path.chmod(0o755)
    settings = {"PATH": str(folder), "LOG": str(folder / "log")}
    done = subprocess.run(["sh", SCRIPT], env=settings, capture_output=True, text=True, timeout=20)
    log = folder / "log"
    return done.returncode, done.stdout + done.stderr, log.read_text() if log.exists() else ""


CASES = {
    "already installed": ({"chromium": "", "apt_get": FAILS}, ""),
    "under another name": ({"google_chrome": "", "id": ROOT}, ""),
    "no apt-get": ({"id": ROOT}, f"{NOT_TESTED}there is no apt-get to install it with.\n"),
    "no permission": (
        {"id": NOBODY, "apt_get": WORKS},
        f"{NOT_TESTED}this user may not install it (neither root nor sudo without a password).\n",
    ),
    "sudo asks for a password": (
        {"id": NOBODY, "apt_get": WORKS, "sudo": "exit 1"},
        f"{NOT_TESTED}this user may not install it (neither root nor sudo without a password).\n",
    ),
    "offline": (
        {"id": ROOT, "apt_get": FAILS},
        f"{NOT_TESTED}the package lists cannot be fetched (no network?).\n",
    ),
    "no package": (
        {"id": ROOT, "apt_get": NO_INSTALL},
        f"{NOT_TESTED}apt-get cannot install it here.\n",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_failed_installation_is_reported_and_is_not_an_error(case, tmp_path):
    commands, expected = CASES[case]
    code, out, _ = attempt(tmp_path, **commands)
    start = "Installing Chromium to test the report in a browser\n"
    assert (code, out.removeprefix(start)) == (0, expected)


@pytest.mark.parametrize(
    "commands", [{"id": ROOT}, {"id": NOBODY, "sudo": 'shift; [ "$1" = true ] || "$@"'}]
)
def test_chromium_is_installed_where_it_can_be(commands, tmp_path):
    code, out, log = attempt(tmp_path, apt_get=WORKS, **commands)
    assert code == 0 and NOT_TESTED not in out
    assert [line.split()[-1] for line in log.splitlines()] == ["update", "chromium"]
