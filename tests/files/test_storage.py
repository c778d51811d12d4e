"""Atomic writes: a file holds its old or its new content, and failures are reported."""

import errno
import os
from pathlib import Path

import pytest

from splagger.errors import RunError
from splagger.files.storage import write_atomically, write_output, writing
from tests.tiny import contents


def test_a_crash_before_the_replacement_leaves_the_old_content(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "new")
    assert contents(tmp_path) == {"file": b"old"}


def test_a_write_replaces_the_whole_content(tmp_path):
    write_atomically(tmp_path / "file", "a longer text")
    write_atomically(tmp_path / "file", "new")
    assert contents(tmp_path) == {"file": b"new"}


def test_a_failed_write_names_the_path_and_the_way_out(tmp_path):
    path = tmp_path / "nowhere" / "file"
    message = r"cannot write .*nowhere/file \(No such file or directory\); choose another --out"
    with pytest.raises(RunError, match=message), writing(path, "choose another --out"):
        write_atomically(path, "text")


def test_an_output_that_cannot_be_written_keeps_its_old_content(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_output(path, "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_output(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_outputs_may_be_links_devices_and_any_text(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    write_output(link, "ö\udcff")
    assert link.is_symlink() and target.read_bytes() == "ö?".encode()
    write_output(os.devnull, b"x")
    assert not Path(os.devnull).is_file()
