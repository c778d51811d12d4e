"""Commands that pages show: found, parsed, and checked for names that do not exist."""

import re
import shlex
import textwrap

import tyro

from splagger import ENVS, METHODS, cli
from splagger.analysis import ANALYSES
from splagger.paper.figures import select

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def blocks(text, language):
    """The fenced blocks of a language in a page."""
    return [textwrap.dedent(body) for _, lang, body in FENCE.findall(text) if lang == language]


def commands(text):
    """The lines of a page that call the command line, continued ones joined."""
    lines = "\n".join(blocks(text, "")).replace("\\\n", " ").splitlines()
    return list(dict.fromkeys(line for line in lines if line.startswith("splagger ")))


def parsed(line):
    """The command as the command line understands it; nothing runs."""
    words = shlex.split(line, comments=True)[1:]
    return tyro.cli(cli.Command, args=words, config=(tyro.conf.OmitArgPrefixes,))


def check_names(command):
    """Fails if a command names an environment, method, figure or analysis that does not exist."""
    named = vars(command)
    for env in named.get("envs", ()) or [named.get("env")]:
        assert env in {None, "ENV"} | set(ENVS) or ":" in env
    if isinstance(command, cli.Train | cli.Bench | cli.Sweep):
        chosen = named.get("methods") or [command.method]
        assert all(name in {"METHOD"} | set(METHODS) or ":" in name for name in chosen)
    if isinstance(command, cli.Figure | cli.Reproduce):
        assert command.name == "claims" or select(command.name)
    if isinstance(command, cli.Analyse):
        assert command.name in {"all"} | set(ANALYSES)
