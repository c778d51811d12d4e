"""Cards: what each agent of the zoo earns, and how it was made. A card is a JSON file beside the agent's file."""

import difflib
import functools as ft
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from splagger.errors import RunError
from splagger.files.storage import write_atomically
from splagger.tables import lookup

FOLDER = Path(__file__).parent / "agents"


@dataclass(frozen=True)
class Card:
    """The facts about one agent.

    - `name`: "environment/method".
    - `mean`, `margin`: the return per meta-episode on `tasks` new tasks, and half the width of its 95% interval.
    - `unrounded`: the return of the same agent on the same tasks before its parameters were rounded to float16.
    - `chosen_from`: the number of trained agents (rates × seeds), of which this one had the highest return on other tasks.
    - `frames`, `seconds`: of training; all agents of the grid trained together in these seconds.
    - `device`, `command`: where and by which command the grid was trained.
    - `parameters`, `bytes`, `sha256`: the size of the agent, and the size and digest of its file.
    """

    name: str
    mean: float
    margin: float
    unrounded: float
    tasks: int
    chosen_from: int
    frames: int
    seconds: float
    device: str
    command: str
    parameters: int
    bytes: int
    sha256: str

    def write(self, folder: Path) -> Path:
        """Writes the card below `folder`; returns its path."""
        path = folder / f"{self.name}.json"
        write_atomically(path, json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n")
        return path


@ft.cache
def cards() -> dict[str, Card]:
    """Returns the card of every agent in the zoo by its name."""
    found = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*/*.json"))
    ]
    return {data["name"]: Card(**data) for data in found}


def path_of(name: str) -> Path:
    """Returns the file of the zoo's agent with this name.

    >>> path_of("t-ls/splager")
    Traceback (most recent call last):
    splagger.errors.SettingError: no agent in the zoo 't-ls/splager'; did you mean t-ls/splagger?
    """
    return FOLDER / f"{lookup(cards(), name, 'agent in the zoo').name}.npz"


def locate(path: str | Path) -> Path:
    """Returns the file or folder at `path`, or the file of the zoo's agent with this name if nothing is there.

    Raises a RunError with similar names if the zoo has any. Otherwise a path that does not exist is returned as it is.
    """
    path = Path(path)
    name = path.as_posix()
    if path.exists():
        return path
    if name in cards():
        return path_of(name)
    below = [known for known in cards() if known.startswith(f"{name}/")]
    near = below or difflib.get_close_matches(name, cards())
    if near:
        raise RunError(
            f"there is no file or folder {name}, and no such agent in the zoo; did you mean {' or '.join(near)}?"
        )
    return path
