"""The tables of docs/performance.md, made from the results files of the benchmarks."""

from docs.table_parts import markdown, measured
from splagger.plots.styles import style_of


def speed() -> str:
    """Training speed of full-size SplAgger on T-LS."""
    files = {
        "2 CPU cores": "train-t-ls-cpu",
        "2 CPU cores, program from the cache": "train-t-ls-cpu-cached",
        "NVIDIA H200": "train-t-ls-h200",
    }
    head = ("machine", "runs in the program", "training frames/s", "with evaluations")
    return markdown((*head, "compilation", "memory"), [_speed(*item) for item in files.items()])


def _speed(machine: str, file: str) -> tuple[str, ...]:
    found = measured(file)
    memory = found["peak_device_memory_gb"] or found["peak_host_memory_gb"]
    return (
        machine,
        f"{found['runs']}",
        f"{found['frames_per_second']:,.0f}",
        f"{found['frames_per_second_with_evaluation']:,.0f}",
        f"{found['compile_seconds']:.1f} s",
        f"{memory:.1f} GB",
    )


def speed_by_task() -> str:
    """Training speed on one H200, 15 runs in one program."""
    files = {
        "T-LS, SplAgger": "train-t-ls-h200",
        "Planning Game, SplAgger": "train-planning-h200",
        "T-LS, LSTM": "train-t-ls-lstm-h200",
    }
    rows = []
    for name, file in files.items():
        found = measured(file)
        seconds = found["compile_seconds"] if file != "train-t-ls-lstm-h200" else None  # not alone
        rows.append(
            (
                name,
                f"{found['frames_per_second']:,.0f}",
                f"{found['frames_per_second_with_evaluation']:,.0f}",
                f"{1e3 * found['seconds_per_update']:.0f}",
                f"{seconds:.1f} s" if seconds else "–",
                f"{found['peak_device_memory_gb']:.1f} GB",
                f"`benchmarks/results/{file}.json`",
            )
        )
    head = ("experiment", "training frames/s", "with evaluations", "ms per update", "compilation")
    return markdown((*head, "GPU memory", "file"), rows)


def parts() -> str:
    """Speed of single parts on two CPU cores."""
    found, robots = measured("parts-cpu"), measured("mujoco-cpu")["steps_per_second"]
    network, steps = found["hypernetwork"], found["environment_steps_per_second"]
    memory = (
        f"{network['fused_memory_mb']:,.0f} MB instead of {network['generated_memory_mb']:,.0f} MB"
    )
    rows = [
        (
            "fused hypernetwork, 2,800 samples",
            f"{network['speedup']:.1f} times as fast as generated weights, in {memory}",
        ),
        *(
            (
                f"65,536 environments of `{env}`",
                f"{steps[env]['65536'] / 1e6:.1f} M steps per second",
            )
            for env in ("t-ls", "planning", "mc-ls")
        ),
        *(
            (f"{count} Cheetahs in training", f"{robots[count]['training']:,.0f} steps per second")
            for count in ("240", "16")
        ),
        (
            "16 Cheetahs in Gymnasium's AsyncVectorEnv",
            f"{robots['16']['gymnasium']:,.0f} steps per second",
        ),
    ]
    return markdown(("part", "on two CPU cores"), rows)


def growth_runs() -> str:
    """How cost grows with the runs in one program."""
    found = measured("growth-runs-gpu")["rows"]
    rows = [
        ("training frames/s", *(f"{r['frames_per_second']:,.0f}" for r in found)),
        ("milliseconds per update", *(f"{1e3 * r['seconds_per_update']:,.0f}" for r in found)),
        ("GPU memory", *(f"{r['peak_device_memory_gb']:.1f} GB" for r in found)),
    ]
    return markdown(("runs in one program", *(f"{r['runs']}" for r in found)), rows)


def growth_envs() -> str:
    """How cost grows with the environments of one run."""
    found = measured("growth-envs-gpu")["rows"]
    rows = [
        ("training frames/s", *(f"{r['frames_per_second']:,.0f}" for r in found)),
        ("milliseconds per update", *(f"{1e3 * r['seconds_per_update']:,.0f}" for r in found)),
    ]
    return markdown(("environments per run", *(f"{r['envs']:,}" for r in found)), rows)


def growth_length() -> str:
    """An aggregator on sequences of growing length."""
    found = measured("growth-length-gpu")["rows"]
    lengths = [f"{r.get('steps', r.get('length')):,}" for r in found]
    rows = [
        (name, *(f"{1e3 * r[key]:.1f} ms" for r in found))
        for name, key in (("associative scan", "scan_seconds"), ("step by step", "step_seconds"))
    ]
    return markdown(("steps", *lengths), rows)


def together() -> str:
    """Several programs on one GPU, frames per second."""
    found = {
        row["programs"]: row["frames_per_second"]
        for row in measured("together-planning-h200")["rows"]
    }
    rows = [
        (
            style_of(method).label,
            *(f"{found[n][method]:,.0f}" if method in found[n] else "–" for n in (1, 2, 3)),
        )
        for method in ("splagger", "rnn", "splagger-nornn")
    ]
    rows.append(("together", *(f"{sum(found[n].values()):,.0f}" for n in (1, 2, 3))))
    return markdown(("programs at a time", "1", "2", "3"), rows)
