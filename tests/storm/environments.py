"""Bad environments: each is refused in one line that names it, or its data are checked numbers.

python -m tests.storm.environments --tries 2000 --seed 0
"""

import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from splagger.bridges import from_gymnasium
from splagger.bridges.gym.checked_env import CheckedEnv
from splagger.errors import UserError
from tests.storm.outcome import Outcome, parse_arguments

STEPS = 30
FINE, REFUSED = "played with finite numbers", "refused in one line"
VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: np.nan,
    lambda: -np.inf,
    lambda: "text",
    lambda: [],
    lambda: {},
    lambda: object(),
    lambda: 10**400,
    lambda: 1j,
    lambda: True,
    lambda: np.zeros(0),
    lambda: np.zeros((3, 3)),
    lambda: np.array([1.0, np.nan, 0.0]),
    lambda: np.array(["a", "b", "c"]),
    lambda: np.array([1, None, 2]),
    lambda: np.full(3, 1e300),
    lambda: (1.0, 2.0),
    lambda: Hostile(),
)
ERRORS = (ValueError, KeyError, ZeroDivisionError, RecursionError, MemoryError, SystemExit)
ERRORS += (StopIteration, AssertionError, UnicodeError, NotImplementedError)


class Hostile:
    """An object whose every conversion fails."""

    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")

    def __float__(self):
        raise RuntimeError("no number")

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")

    def __repr__(self):
        return "hostile\nobject"


class Bad(gymnasium.Env):
    """Works until a certain call; then one part of the result is replaced, or an error is raised."""

    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (3,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, rng: random.Random):
        self.rng, self.calls, self.at = rng, 0, rng.randrange(STEPS)
        self.fault = rng.choice((self._raise, self._replace_part, self._replace_all, self._resize))

    def reset(self, *, seed=None, options=None):
        return self._spoiled([np.zeros(3, np.float32), {}])

    def step(self, action):
        ends = self.rng.random() < 0.2
        return self._spoiled([np.ones(3, np.float32), 0.5, ends, False, {}])

    def _spoiled(self, result: list) -> Any:
        self.calls += 1
        return self.fault(result) if self.calls > self.at else tuple(result)

    def _raise(self, result):
        raise self.rng.choice(ERRORS)("two\nlines")

    def _replace_part(self, result):
        result[self.rng.randrange(len(result))] = self.rng.choice(VALUES)()
        return tuple(result)

    def _replace_all(self, result):
        return self.rng.choice(VALUES)()

    def _resize(self, result):
        return tuple(result[: self.rng.randrange(len(result))]) * self.rng.randint(0, 3)


def make(key: str) -> Bad:
    return Bad(random.Random(key))


def play(key: str) -> str:
    """Plays one bad environment; returns how that ended."""
    rng = random.Random(f"play {key}")
    options = {"episodes": rng.randint(1, 3), "max_steps": 9, "kwargs": {"key": key}}
    source = from_gymnasium(make, **options)
    try:
        env = CheckedEnv(source.env, source.episodes)
        env.reset(0)
        for _ in range(STEPS):
            found = env.step(np.array(rng.randrange(2), np.int32))
            numbers = np.append(np.concatenate([found.obs, found.next_obs]), found.reward)
            if not np.isfinite(numbers).all():
                return f"silent: {numbers}"
            if found.task_done:
                env.reset(rng.randrange(100))
    except UserError as error:
        return REFUSED if "\n" not in str(error) else f"several lines: {error}"
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"
    return FINE


def storm(tries: int, seed: int = 0) -> Outcome:
    """Plays `tries` environments with random faults."""
    failures, ends = [], Counter({FINE: 0, REFUSED: 0})
    for number in range(tries):
        end = play(f"{seed} {number}")
        if end in (FINE, REFUSED):
            ends[end] += 1
        else:
            repeat = f"python -m tests.storm.environments --tries {number + 1} --seed {seed}"
            failures.append(f"{end} ({repeat})")
    return Outcome("bad environments", tries, failures, dict(ends))


if __name__ == "__main__":
    found = storm(*parse_arguments(tries=2000))
    print(found)
    sys.exit(bool(found.failures))
