"""The compiled program of a grid: what a block of updates and an evaluation returns."""

import jax.numpy as jnp

from splagger.ppo import faults, train
from splagger.ppo.faults import QUANTITIES, REWARD, Fault
from splagger.training.program import compile_grid
from tests.tiny import tiny

LOSS = REWARD + 1 + QUANTITIES.index("policy_loss")


def test_a_block_reports_the_fault_of_its_updates_before_that_of_its_evaluation(monkeypatch):
    """All members have a fault in the evaluation, and those with the larger rate also one in training."""

    def faulty_updates(config, tunables, state):
        kind = jnp.where(tunables.learning_rate > 5e-4, LOSS, faults.NONE)
        metrics = {"policy_loss": tunables.learning_rate}
        return state, metrics | faults.to_metrics(Fault(kind, state.update))

    def faulty_evaluation(config, state):
        fault = Fault(jnp.int32(REWARD), state.update)
        return {"return": jnp.float32(1)} | faults.to_metrics(fault)

    monkeypatch.setattr(train, "updates", faulty_updates)
    monkeypatch.setattr(train, "evaluation", faulty_evaluation)
    run = tiny()
    program = compile_grid(run.config, run.points)
    state = program.init()
    assert [fault.kind for fault in program.evaluate(state)["fault"]] == [REWARD] * run.size
    state, metrics = program.block(state)
    expected = [LOSS if point.rate == 1e-3 else REWARD for point in run.points]
    assert [fault.kind for fault in metrics["fault"]] == expected
    assert {"return", "policy_loss"} <= set(metrics)
