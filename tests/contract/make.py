"""Writes what `test_contract` compares with: `python -m tests.contract.make`, when results were added.

With `--small-run`, it also trains the small run again. Then the contract no longer covers files of the first layout.
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import jax
import jaxlib
import numpy as np

import splagger
from splagger.paper.claims import evaluate_claims
from splagger.paper.figures import FIGURES
from splagger.plots.export import drawable
from splagger.runs.folder import find_runs
from splagger.runs.run import Run
from splagger.stats.evidence import Evidence

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "results"
GOLDEN, RUN, AGENT = HERE / "golden.json", HERE / "run", HERE / "agent.npz"
SMALL = {
    "env.length": 5,
    "ppo.envs": 4,
    "ppo.steps": 40,
    "ppo.eval_interval": 2,
    "ppo.buffer": 20,
    "ppo.trajectories": 2,
    "ppo.beliefs": 3,
    "network.embedding": (4, 2, 2),
    "network.output_size": 4,
    "network.state_embedding": 4,
    "network.latent_embedding": 3,
    "network.hidden": (4, 4),
    "network.width_factor": 0.03125,
}


def small_run(out: Path, frames: int = 2 * 320):
    """Two seeds of a tiny SplAgger on a short T-Maze, two evaluations of two updates."""
    return splagger.train(
        "t-ls-small", "splagger", [1e-2], 2, frames, out=out, settings=SMALL, show=False
    )


def actions_of(agent) -> list[int]:
    """What it does on a fixed sequence of observations and rewards, and on what it remembers of them."""
    random, chosen = np.random.default_rng(0), []
    agent.reset()
    for _ in range(20):
        obs, after = random.normal(size=(2, agent.env.obs_size))
        chosen.append(agent.act(obs))
        agent.observe(chosen[-1], float(random.normal()), after, False)
    return chosen + [round(float(x), 4) for x in np.asarray(agent.memory.output)]


def machine() -> dict:
    """The kind of machine and the compiler: equal ones compute equal bits."""
    flags = Path("/proc/cpuinfo")
    lines = flags.read_text().splitlines() if flags.exists() else []
    wanted = sorted({line for line in lines if line.startswith(("model name", "flags"))})
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:10]
    return {"cpu": digest, "jax": jax.__version__, "jaxlib": jaxlib.__version__}


def digests() -> dict[str, str]:
    """Folder of each recorded run → the digest of the run that its arguments describe."""
    found = {}
    for run in find_runs(RESULTS):
        arguments = run.record().arguments
        if not arguments["env"].startswith("gym:"):  # those need packages of others
            found[str(run.path.relative_to(RESULTS))] = Run.create(**arguments).digest
    return found


def figure_numbers(evidence: Evidence) -> dict[str, dict[str, list]]:
    """Figure → line → its points, and the means of their coordinates.

    Means instead of a digest: the last digits of smoothed curves differ between processors.
    """
    found = {}
    for name, figure in FIGURES.items():
        lines = [
            (panel.name, line) for panel, lines in drawable(figure, evidence) for line in lines
        ]
        if lines:
            found[name] = {f"{panel}: {line.style.label}": _means(line) for panel, line in lines}
    return found


def _means(line) -> list:
    columns = (line.x, line.mean, line.low, line.high)
    return [len(line.x), *(float(np.mean(column)) for column in columns)]


def verdicts(results) -> dict[str, list]:
    """Claim → outcome and effects."""
    return {
        claim.name: [
            verdict.outcome,
            *(list(f.effect) if f.effect else None for f in verdict.findings),
        ]
        for claim, verdict in results
    }


def of_results() -> dict:
    """What is derived from the recorded results."""
    evidence = Evidence.read(RESULTS, analyses=RESULTS / "analysis")
    return {
        "digests": digests(),
        "figures": figure_numbers(evidence),
        "verdicts": verdicts(evaluate_claims(evidence)),
    }


def of_small_run() -> dict:
    """Trains the small run again and writes its folder and its agent, in the present layout."""
    shutil.rmtree(RUN, ignore_errors=True)
    folder = small_run(RUN).attrs["folder"]
    shutil.rmtree(Path(folder) / "tensorboard", ignore_errors=True)
    agent = splagger.load(folder)
    splagger.save_agent(agent, AGENT)
    names = sorted(splagger._PLACES)
    return {"machine": machine(), "public": names, "actions": actions_of(agent)}


def main() -> None:
    golden = json.loads(GOLDEN.read_text()) | of_results()
    if "--small-run" in sys.argv:
        golden |= of_small_run()
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
