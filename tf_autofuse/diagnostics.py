"""What the plugin tells its user: one warning for each thing that went wrong, with its reason and its remedy.

Why: a failure never breaks a session, so the warning is all that the user sees of it; repeated for every run
it would be noise. Holds on exit of every function: the same thing is said once in a process, on one line,
through the logger "tf_autofuse". In strict mode (AUTOFUSE_STRICT=1) a failure raises StrictError instead,
every time.
"""
import logging
import os
import threading
from typing import Iterable, Set

from tf_autofuse.config import COMES_LATER, NO_EFFECT, Config, ConfigProblem
from tf_autofuse.config_values import TRUE_WORDS

logger = logging.getLogger("tf_autofuse")
_lock = threading.Lock()
_said: Set[str] = set()


class StrictError(RuntimeError):
    """A failure of the plugin in strict mode."""


def strict() -> bool:
    """Whether AUTOFUSE_STRICT asks for errors instead of warnings."""
    return os.environ.get("AUTOFUSE_STRICT", "").strip().lower() in TRUE_WORDS


def warn_once(key: str, reason: str, remedy: str) -> None:
    """Warns of a failure, once for this key. Raises StrictError in strict mode."""
    line = _line(reason, remedy)
    if strict():
        raise StrictError(line)
    _say(key, line)


def warn_region(region: str, reason: str, remedy: str) -> None:
    """Warns that a region stays as TensorFlow has it, once for this region and reason. Raises StrictError in
    strict mode."""
    warn_once("region %s: %s" % (region, reason), "%s was not fused: %s" % (region, reason), remedy)


def report_problems(config: Config) -> None:
    """Says, once in a process, what of the settings was not taken as written. Raises StrictError in strict
    mode for unknown settings and bad values, and for nothing else."""
    errors = [problem for problem in config.problems if problem.is_error]
    if errors and config.strict:
        raise StrictError("\n".join(_line(problem.text, "") for problem in errors))
    later = [problem for problem in config.problems if problem.kind == COMES_LATER]
    for problem in config.problems:
        if problem.kind == NO_EFFECT:
            if config.verbose:
                _say(_key(problem), _line(problem.text, ""), logging.INFO)
        elif problem.kind != COMES_LATER:
            _say(_key(problem), _line(problem.text, "`python -m tf_autofuse config` shows what is in force"))
    _say_together(later)


def inform(level: int, config: Config, text: str) -> None:
    """Says something that is no problem, if AUTOFUSE_VERBOSE is at least `level` (1 or 2)."""
    if config.verbose >= level:
        _emit(logging.INFO, "tf_autofuse: " + " ".join(text.split()))


def announce(text: str) -> None:
    """Says that something begins which takes long enough to wonder about."""
    _emit(logging.INFO, "tf_autofuse: " + text)


def forget() -> None:
    """Lets everything be said again. For tests."""
    with _lock:
        _said.clear()


def _key(problem: ConfigProblem) -> str:
    return "config %s %s=%s: %s" % (problem.kind, problem.name, problem.given, problem.text)


def _say_together(problems: Iterable[ConfigProblem]) -> None:
    """One line for all of them: a script that sets five options of the NPU route should not get five."""
    with _lock:
        fresh = [problem for problem in problems if _key(problem) not in _said]
        _said.update(_key(problem) for problem in fresh)
    if fresh:
        _emit(
            logging.WARNING,
            _line(
                "read, but without effect in this version yet: %s"
                % ", ".join("%s=%s" % (problem.name, problem.used) for problem in fresh),
                "",
            ),
        )


def _line(reason: str, remedy: str) -> str:
    """One line, whatever line breaks the parts have; both end with a full stop."""
    parts = [" ".join(part.split()).rstrip(".") + "." for part in (reason, remedy) if part.strip()]
    return "tf_autofuse: " + " ".join(
        part[0].upper() + part[1:] if i else part for i, part in enumerate(parts)
    )


def _say(key: str, line: str, level: int = logging.WARNING) -> None:
    with _lock:
        if key in _said:
            return
        _said.add(key)
    _emit(level, line)


def _emit(level: int, line: str) -> None:
    # Python prints warnings to stderr where nobody configured logging, but drops what is less than a warning.
    if level < logging.WARNING:
        if not logger.hasHandlers():
            logger.addHandler(logging.StreamHandler())
        if not logger.isEnabledFor(level):
            logger.setLevel(level)
    logger.log(level, "%s", line)
