"""The folder for compiled programs, on a disk that no other machine writes to."""

import os
import tempfile
from pathlib import Path

# File systems that several machines may share, as /proc/mounts names them.
SHARED = (
    *("nfs", "lustre", "gpfs", "beegfs", "ceph", "gluster", "panfs", "orangefs", "pvfs2", "afs"),
    *("cifs", "smb", "9p", "virtiofs", "fuse.sshfs", "fuse.gluster", "fuse.ceph", "fuse.juicefs"),
)


def cache_folder() -> Path:
    """Returns the folder for caches: splagger in $XDG_CACHE_HOME or ~/.cache, or in /tmp if the home is shared.

    JAX writes the files of its cache in place, so that another machine could read half of one. Programs for CPUs
    also depend on the processor, which may differ.
    """
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "splagger"
    usual = Path.home() / ".cache" / "splagger"
    return _private_folder() or usual if is_shared(usual) else usual


def is_shared(path: Path, mounts: Path = Path("/proc/mounts")) -> bool:
    """Whether a path is on a file system that several machines may share; False where that is unknown."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return False
    path = path.resolve()
    rows = [
        (Path(point.replace("\\040", " ")), kind) for _, point, kind, *_ in map(str.split, lines)
    ]
    # Of two file systems at one place, the later one hides the other.
    over = [
        (len(point.parts), i) for i, (point, _) in enumerate(rows) if path.is_relative_to(point)
    ]
    return bool(over) and rows[max(over)[1]][1].startswith(SHARED)


def _private_folder() -> Path | None:
    """Makes a folder for temporary files that nobody else can write to; None if that name is taken."""
    path = Path(tempfile.gettempdir()) / f"splagger-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return None
    is_ours = path.is_dir() and not path.is_symlink() and found.st_uid == os.getuid()
    return path if is_ours and not found.st_mode & 0o022 else None
