"""Compiled programs are cached on a disk of this machine."""

import os
import tempfile
from pathlib import Path

import pytest

from splagger.files import cache
from splagger.files.cache import cache_folder, is_shared

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw,vers=4.2 0 0
/dev/sdb1 /home/local ext4 rw 0 0
pool /scratch lustre rw 0 0
tmpfs /scratch/fast tmpfs rw 0 0
x /with\\040space beegfs_nodev rw 0 0
/dev/sdc1 /twice ext4 rw 0 0
y:/z /twice nfs rw 0 0
"""
PLACES = {
    "/var/me/.cache": False,
    "/home/me/.cache": True,
    "/home/local/me": False,
    "/homely": False,
    "/scratch/me": True,
    "/scratch/fast/me": False,
    "/with space/me": True,
    "/twice/me": True,
}


@pytest.mark.parametrize("place", PLACES)
def test_network_file_systems_are_recognized(tmp_path, place):
    (tmp_path / "mounts").write_text(MOUNTS)
    assert is_shared(Path(place), tmp_path / "mounts") == PLACES[place]
    assert not is_shared(Path(place), tmp_path / "no mounts")


def test_a_shared_home_gets_a_private_folder_on_this_machine(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    usual = Path.home() / ".cache/splagger"
    monkeypatch.setattr(cache, "is_shared", lambda path: False)
    assert cache_folder() == usual
    monkeypatch.setattr(cache, "is_shared", lambda path: True)
    for _ in range(2):  # made, then found
        assert cache_folder() == tmp_path / f"splagger-{os.getuid()}"
    assert cache_folder().stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("XDG_CACHE_HOME", "/chosen")
    assert cache_folder() == Path("/chosen/splagger")


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path, monkeypatch):
    """Somebody else could leave programs there, which JAX would run."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cache, "is_shared", lambda path: True)
    cache_folder().chmod(0o777)
    assert cache_folder() == Path.home() / ".cache/splagger"
    os.rmdir(tmp_path / f"splagger-{os.getuid()}")
    (tmp_path / f"splagger-{os.getuid()}").symlink_to("/")
    assert cache_folder() == Path.home() / ".cache/splagger"
