"""Writes what `test_contract` compares with: `python -m tests.contract.make`. Run it only to extend the contract."""

import hashlib
import json
import shutil
from pathlib import Path

import jax
import jaxlib
import numpy as np

import splagger
from splagger.paper.claims import evaluate_claims
from splagger.paper.figures import FIGURES
from splagger.plots.export import drawable, table
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


def figure_digests(evidence: Evidence) -> dict[str, str]:
    """Figure → digest of its CSV."""
    drawn = {name: drawable(figure, evidence) for name, figure in FIGURES.items()}
    tables = {name: table(lines) for name, lines in drawn.items() if lines}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in tables.items()}


def verdicts(results) -> dict[str, list]:
    """Claim → outcome and effects."""
    return {
        claim.name: [
            verdict.outcome,
            *(
                [round(x, 6) for x in finding.effect] if finding.effect else None
                for finding in verdict.findings
            ),
        ]
        for claim, verdict in results
    }


def main() -> None:
    shutil.rmtree(RUN, ignore_errors=True)
    folder = small_run(RUN).attrs["folder"]
    shutil.rmtree(Path(folder) / "tensorboard", ignore_errors=True)
    agent = splagger.load(folder)
    splagger.save_agent(agent, AGENT)
    evidence = Evidence.read(RESULTS, analyses=RESULTS / "analysis")
    golden = {
        "machine": machine(),
        "digests": digests(),
        "figures": figure_digests(evidence),
        "verdicts": verdicts(evaluate_claims(evidence)),
        "public": sorted(splagger._PLACES),
        "actions": actions_of(agent),
    }
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
