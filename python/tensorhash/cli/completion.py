"""Print a script that completes commands and options in bash, zsh or fish."""

from __future__ import annotations

import argparse

_BASH = """_tensorhash() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} command=${{COMP_WORDS[1]}}
    if [ "$COMP_CWORD" = 1 ]; then COMPREPLY=($(compgen -W "{commands}" -- "$word")); return; fi
    local options=""
    case $command in
{cases}
    esac
    case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
}}
complete -o filenames -F _tensorhash tensorhash
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(options: argparse.Namespace) -> int:
    """Prints the script of the shell."""
    commands = _commands()
    if options.shell == "fish":
        print(_fish(commands))
        return 0
    cases = "\n".join(
        f'    {name}) options="{" ".join(flags)}" ;;' for name, (_, flags) in commands.items()
    )
    script = _BASH.format(commands=" ".join(commands), cases=cases)
    if options.shell == "zsh":
        script = "autoload -U bashcompinit && bashcompinit\n" + script
    print(script, end="")
    return 0


def _commands() -> dict[str, tuple[str, list[str]]]:
    """(summary, options) of each command, from the parser itself."""
    from tensorhash.cli._parser import make_parser

    groups = [a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    helps = {choice.dest: choice.help or "" for choice in groups[0]._choices_actions}
    return {
        name: (helps[name], [flag for action in sub._actions for flag in action.option_strings])
        for name, sub in groups[0].choices.items()
    }


def _fish(commands: dict[str, tuple[str, list[str]]]) -> str:
    lines = []
    for name, (summary, flags) in commands.items():
        lines.append(f"complete -c tensorhash -n __fish_use_subcommand -a {name} -d '{summary}'")
        for flag in flags:
            kind = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            lines.append(f"complete -c tensorhash -n '__fish_seen_subcommand_from {name}' {kind}")
    return "\n".join(lines)
