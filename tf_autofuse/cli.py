"""The command tf-autofuse.

Holds for every command: a mistake of the user ends with exit code 2, one message that says what to do next,
and no traceback. A script that was asked to run keeps its own exit code. Commands import what they need when
they run, so that `config`, `version` and `docs` need neither TensorFlow nor a compiler.
"""
import json
import os
import sys
import time
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import click
from rich.console import Console

import tf_autofuse
from tf_autofuse.config import Config
from tf_autofuse.config_values import BadValue, Bytes, meant, nearest_of

#: Shared by the commands that show the time on an NPU.
_MODEL_HELP = "analytic: the tiling's own formulas; simulator: every instruction of the built kernels, slow."
_PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": ["--help"]}


class UserError(click.ClickException):
    """A mistake of the user. The message ends with what to do."""

    exit_code = 2


class _Commands(click.Group):
    """A group that takes `tf-autofuse script.py ...` for `tf-autofuse run script.py ...`."""

    def resolve_command(self, context, arguments):
        word = arguments[0]
        if self.get_command(context, word) is None and (word.endswith(".py") or os.path.exists(word)):
            arguments = ["run"] + list(arguments)
        elif self.get_command(context, word) is None and not word.startswith("-"):
            nearest = nearest_of(word, self.list_commands(context))
            raise UserError(
                "there is no command %s, and no file of that name%s; the commands are: %s"
                % (
                    word,
                    meant(nearest),
                    ", ".join(self.list_commands(context)),
                )
            )
        return super().resolve_command(context, arguments)


class _ScriptCommand(click.Command):
    """A command whose options stand before a script, and whatever follows that is the script's."""

    def parse_args(self, context, arguments):
        result = super().parse_args(context, arguments)
        script = context.params.get("script") or context.params.get("source") or ""
        if script.startswith("-"):
            names = [name for option in self.params for name in option.opts]
            known = [name for name in names if name.startswith("-")] + ["--help"]
            name = script.split("=")[0]
            nearest = nearest_of(name, known)
            raise UserError(
                "%s has no option %s%s; its options are: %s"
                % (
                    self.name,
                    name,
                    meant(nearest),
                    ", ".join(known),
                )
            )
        return result


class _Run:
    """A script to run once click has let go of the command line: click treats some exceptions as its own."""

    def __init__(self, script: str, arguments: Sequence[str], explain: bool = False):
        self.script, self.arguments, self.explain = script, arguments, explain

    def __call__(self) -> None:
        from tf_autofuse.script import CannotRun, run_script

        try:
            run_script(self.script, self.arguments)
        except CannotRun as error:
            raise UserError(str(error))
        finally:
            if self.explain and sys.exc_info()[0] in (None, SystemExit):
                from tf_autofuse.report import explain, journal

                explain.render(journal.records(), _console())


class _Export(NamedTuple):
    """An export, once click has let go of the command line."""

    source: str
    arguments: Sequence[str]
    folder: Any
    machine: Any
    vendor: str
    outputs: str

    def __call__(self) -> None:
        from tf_autofuse.export_project import ExportError, export

        try:
            if self.source.endswith((".pb", ".pbtxt")):
                exported = self._graph(export)
            else:
                exported = self._script(export)
        except ExportError as error:
            raise UserError(str(error))
        for name, count in exported.ops:
            click.echo("%s for %d region%s" % (name, count, "s" if count > 1 else ""))
        for name, reason in exported.left:
            click.echo("not exported: %s: %s" % (name, reason))
        click.echo("wrote %s; build it with its build.sh where CANN is installed" % exported.folder)

    def _script(self, export):
        from tf_autofuse.frontend import entry
        from tf_autofuse.report import journal
        from tf_autofuse.script import CannotRun, run_script

        try:
            entry.for_all_sessions()
            run_script(self.source, self.arguments)
        except CannotRun as error:
            raise UserError(str(error))
        except SystemExit as end:
            if end.code not in (None, 0):
                click.echo("the script ended with %r, so nothing is exported" % (end.code,), err=True)
                raise
        return export(journal.records(), self.folder, self.machine, self.vendor)

    def _graph(self, export):
        from tf_autofuse.frontend import graph_file
        from tf_autofuse.report import journal

        try:
            outputs = [name.strip() for name in self.outputs.split(",") if name.strip()]
            passed = graph_file.run_passes(graph_file.read(self.source), outputs)
        except graph_file.GraphFileError as error:
            raise UserError(str(error))
        records = journal.records()
        return export(
            records, self.folder, self.machine, self.vendor, lambda types: graph_file.files(passed, types)
        )


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tf_autofuse.__version__, prog_name="tf-autofuse")
def cli():
    """Fuses chains of light TensorFlow 1.15 ops into generated Ascend C kernels.

    `tf-autofuse script.py` is short for `tf-autofuse run script.py`.
    """


@cli.command(cls=_ScriptCommand, context_settings=_PASS_ON)
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(script, arguments):
    """Run a Python script with the plugin loaded; npu_bridge is stood in for where none is installed."""
    return _Run(script, arguments)


@cli.command(cls=_ScriptCommand, context_settings=_PASS_ON)
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def explain(script, arguments):
    """Run a script, then print what was fused, into which kernels, and why the rest was not."""
    return _Run(script, arguments, explain=True)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def config(as_json):
    """Print every setting in force, where it comes from, and what was not taken as written."""
    from tf_autofuse import config_view

    in_force = Config.from_sources(os.environ)
    if as_json:
        click.echo(config_view.as_json(in_force))
    else:
        config_view.render(in_force, _console())


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
@click.pass_context
def doctor(context, as_json):
    """Check this machine and environment. The exit code is 1 if something will not work."""
    from tf_autofuse import doctor as checks

    findings = checks.examine(os.environ)
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        console = _console()
        styles = {checks.OK: "green", checks.NOTE: "cyan", checks.PROBLEM: "bold red"}
        for finding in findings:
            console.print("%-8s" % finding.status, style=styles[finding.status], end="")
            console.print(
                "%s: %s" % (finding.name, finding.text), markup=False, highlight=False, soft_wrap=True
            )
            if finding.remedy:
                console.print("        -> %s" % finding.remedy, markup=False, highlight=False, soft_wrap=True)
    context.exit(1 if any(finding.status == checks.PROBLEM for finding in findings) else 0)


@cli.command(cls=_ScriptCommand, context_settings=_PASS_ON)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
@click.option("--soc", default="", help="The chip to model; default: Ascend910B4-1.")
@click.option("--model", type=click.Choice(["analytic", "simulator"]), default="analytic", help=_MODEL_HELP)
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def compare(as_json, soc, model, script, arguments):
    """Run a script with fusion off and on; print ops, kernels, modelled and measured time, differences."""
    from tf_autofuse.profiling import compare as comparing

    try:
        result = comparing.compare(script, arguments, soc, model)
    except (comparing.CompareError, ValueError) as error:
        raise UserError(str(error))
    if as_json:
        click.echo(json.dumps(comparing.as_json(result), indent=2))
    else:
        comparing.render(result, _console())


@cli.command(cls=_ScriptCommand, context_settings=_PASS_ON)
@click.option("-o", "folder", default="", help="The folder to write; needed.")
@click.option(
    "--outputs", default="", help="Of a graph: the tensors to keep, with commas; default: all unread."
)
@click.option("--soc", default="", help="The chip to write for; default: soc_version, else Ascend910B4-1.")
@click.option("--vendor", default="autofuse", help="The name that the op package is installed under.")
@click.option("--force", is_flag=True, help="Replace an earlier export.")
@click.argument("source")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def export(folder, outputs, soc, vendor, force, source, arguments):
    """Write what is fused of a script, or of a frozen graph (.pb, .pbtxt), as an operator project for CANN.

    With the project's package installed, GE itself can use the fused ops. docs/export.md says how.
    """
    from pathlib import Path

    from tf_autofuse import export_project

    # The options may stand behind the source, as compilers have it.
    folder, arguments = _taken(arguments, folder)
    if not folder:
        raise UserError("which folder? Give it with -o FOLDER")
    if not os.path.exists(source):
        raise UserError("%s can't be read; give the path of a script or of a frozen graph" % source)
    try:
        machine = export_project.check(
            Path(folder), soc or Config.from_sources(os.environ).soc_version, vendor, force
        )
    except (export_project.ExportError, ValueError) as error:
        raise UserError(str(error))
    export_project.set_environment(os.environ)
    return _Export(source, arguments, Path(folder).absolute(), machine, vendor, outputs)


@cli.command()
@click.option(
    "--export", "wanted", type=click.Choice(["on", "off"]), default="on", help="As msprof has it: on."
)
@click.option("--output", required=True, help="A PROF_* folder, or the folder that holds some.")
@click.option("--soc", default=None, help="The chip to model; default: the one that was profiled for.")
@click.option("--model", type=click.Choice(["analytic", "simulator"]), default="analytic", help=_MODEL_HELP)
def msprof(wanted, output, soc, model):
    """Export profiles: op_summary_*.csv and a timeline, into mindstudio_profiler_output/ below PROF_*."""
    from pathlib import Path

    from tf_autofuse.profiling.export import export
    from tf_autofuse.profiling.records import ProfileError

    if wanted == "off":
        raise UserError("with --export=off there is nothing to do; give --export=on")
    try:
        exported = export(Path(output), soc, model)
    except (ProfileError, ValueError, OSError) as error:
        raise UserError(str(error))
    for item in exported:
        click.echo("wrote %s and %s" % (item.summary, item.timeline))
        click.echo(
            "%d rows measured on the host, %d modelled (%.2f us of kernels)"
            % (item.measured, item.modelled, item.microseconds)
        )
        if item.missing:
            click.echo("not modelled: " + ", ".join("%s x%d" % pair for pair in item.missing))


@cli.group()
def cache():
    """Look at or clean up the built kernels."""


@cache.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def cache_ls(as_json):
    """List the built kernels, the last used first."""
    from rich.table import Table
    from tf_autofuse.build import cache as kernels

    entries = sorted(kernels.list_entries(_cache_dir()), key=lambda entry: -entry.last_used)
    if as_json:
        click.echo(
            json.dumps([dict(entry._asdict(), folder=str(entry.folder)) for entry in entries], indent=2)
        )
        return
    table = Table("name", "kind", "bytes", "last used", "key")
    for entry in entries:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.last_used))
        table.add_row(
            entry.name,
            "damaged" if entry.damaged else entry.kind,
            "{:,}".format(entry.bytes),
            used,
            entry.key,
        )
    console = _console()
    if entries:
        console.print(table)
    console.print(
        "%d entries, %s bytes" % (len(entries), "{:,}".format(sum(entry.bytes for entry in entries)))
    )
    console.print(kernels.describe_root(_cache_dir()), markup=False, highlight=False, soft_wrap=True)


@cache.command("gc")
@click.option("--max-size", help="What to leave, such as 500M or 2G; default: AUTOFUSE_CACHE_SIZE.")
def cache_gc(max_size):
    """Remove damaged kernels, then the least recently used ones until the rest fits."""
    from tf_autofuse.build import cache as kernels

    size = Config.from_sources(os.environ).cache_size
    if max_size is not None:
        try:
            size = Bytes().parse(max_size, lambda text, nearest: None)
        except BadValue as error:
            raise UserError("--max-size %s: %s" % (max_size, error))
    _tell_removed(kernels.collect(size, _cache_dir()), kernels.describe_root(_cache_dir()))


@cache.command("clear")
def cache_clear():
    """Remove all built kernels."""
    from tf_autofuse.build import cache as kernels

    _tell_removed(kernels.clear(_cache_dir()), kernels.describe_root(_cache_dir()))


@cli.command()
@click.argument("name", required=False)
@click.option("--write", is_flag=True, help="Write all of them into docs/ of this checkout.")
def docs(name, write):
    """Print a document that is made from the project's tables, e.g. `docs flags`."""
    from tf_autofuse import documents

    if write:
        try:
            changed = documents.write_all()
        except OSError as error:
            raise UserError("the documents can't be written: %s" % error)
        click.echo("\n".join("wrote %s" % path for path in changed) or "all up to date")
        return
    if name not in documents.DOCUMENTS:
        known = ", ".join(documents.DOCUMENTS)
        if name is None:
            raise UserError("which document? There are: %s (or --write for all)" % known)
        nearest = nearest_of(name, documents.DOCUMENTS)
        raise UserError(
            "there is no document %s%s; there are: %s"
            % (name, meant(nearest), known)
        )
    click.echo(documents.DOCUMENTS[name].text(), nl=False)


@cli.command()
def version():
    """Print the version."""
    click.echo(tf_autofuse.__version__)


def _taken(arguments: Sequence[str], folder: str) -> Tuple[str, Sequence[str]]:
    """(the folder, the other arguments) where -o FOLDER is the first thing behind the source."""
    if not folder and len(arguments) > 1 and arguments[0] == "-o":
        return arguments[1], arguments[2:]
    return folder, arguments


def _console() -> Console:
    # Into a file or a pipe nothing is cut to the width of a screen.
    return Console(width=None if sys.stdout.isatty() else 240)


def _cache_dir() -> Optional[str]:
    return Config.from_sources(os.environ).cache_dir or None


def _tell_removed(removed, where: str) -> None:
    click.echo("removed %d entries, %s bytes: %s" % (removed.entries, "{:,}".format(removed.bytes), where))


def main(arguments: Optional[List[str]] = None, prog_name: str = "tf-autofuse") -> None:
    """Runs one command line and exits."""
    try:
        result = cli.main(args=arguments, prog_name=prog_name, standalone_mode=False)
        if isinstance(result, (_Run, _Export)):
            result()
            result = 0
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader (head, say) has seen enough; Python must not complain about stdout again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    sys.exit(result if isinstance(result, int) else 0)
