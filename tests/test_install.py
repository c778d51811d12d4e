"""Chromium is installed where it may be; elsewhere a plain line says that the browser test is not run."""

import pathlib
import shutil
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / ".ci" / "browser"
SAID = "The report is not tested in a browser: Chromium is not installed, and "
ROOT, NOBODY = "echo 0", "echo 1000"
WORKS, FAILS = 'echo "$@" >> "$LOG"', 'echo "$@" >> "$LOG"; exit 100'
NO_INSTALL = 'echo "$@" >> "$LOG"; case "$*" in *install*) exit 100;; esac'


def attempt(folder, **commands):
    """(exit code, output, what apt-get was asked) where only these commands exist."""
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
    "there already": ({"chromium": "", "apt_get": FAILS}, ""),
    "under another name": ({"google_chrome": "", "id": ROOT}, ""),
    "no apt-get": ({"id": ROOT}, f"{SAID}there is no apt-get to install it with.\n"),
    "no right": (
        {"id": NOBODY, "apt_get": WORKS},
        f"{SAID}this user may not install it (neither root nor sudo without a password).\n",
    ),
    "sudo asks": (
        {"id": NOBODY, "apt_get": WORKS, "sudo": "exit 1"},
        f"{SAID}this user may not install it (neither root nor sudo without a password).\n",
    ),
    "offline": (
        {"id": ROOT, "apt_get": FAILS},
        f"{SAID}the package lists cannot be fetched (no network?).\n",
    ),
    "no package": ({"id": ROOT, "apt_get": NO_INSTALL}, f"{SAID}apt-get cannot install it here.\n"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_installed_is_told_and_fails_nothing(case, tmp_path):
    commands, said = CASES[case]
    code, out, _ = attempt(tmp_path, **commands)
    start = "Installing Chromium to test the report in a browser\n"
    assert (code, out.removeprefix(start)) == (0, said)


@pytest.mark.parametrize(
    "commands", [{"id": ROOT}, {"id": NOBODY, "sudo": 'shift; [ "$1" = true ] || "$@"'}]
)
def test_what_may_be_installed_is(commands, tmp_path):
    code, out, asked = attempt(tmp_path, apt_get=WORKS, **commands)
    assert code == 0 and SAID not in out
    assert [line.split()[-1] for line in asked.splitlines()] == ["update", "chromium"]
