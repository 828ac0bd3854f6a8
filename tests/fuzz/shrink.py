"""Makes a failing recipe small: drops fetches, then steps, as long as it fails."""

import re
from typing import Callable, Iterator, Tuple

from tests.fuzz.recipe import Recipe, Step


def shrink(recipe: Recipe, fails: Callable[[Recipe], bool]) -> Recipe:
    """The smallest recipe on the way down for which `fails` holds. On entry it holds for `recipe`."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(recipe):
            if fails(smaller):
                recipe, changed = smaller, True
                break
    return recipe


def _smaller(recipe: Recipe) -> Iterator[Recipe]:
    needed = _without_unread(recipe)
    if needed != recipe:
        yield needed
    if len(recipe.fetches) > 1:
        for number in recipe.fetches:
            yield recipe._replace(fetches=(number,))
        for number in recipe.fetches:
            yield recipe._replace(fetches=tuple(n for n in recipe.fetches if n != number))
    else:
        # the result's own inputs first: half of the recipe goes at once where the fault lies before
        at = recipe.fetches[0] - len(recipe.sources)
        for number in recipe.steps[at].reads if at >= 0 else ():
            if number >= len(recipe.sources):
                yield recipe._replace(fetches=(number,))
    for at in reversed(range(len(recipe.steps))):
        for number in recipe.steps[at].reads:
            yield _replaced(recipe, at + len(recipe.sources), number)
    for at, source in enumerate(recipe.sources):
        if source.unknown:
            yield recipe._replace(
                sources=recipe.sources[:at] + (source._replace(unknown=False),) + recipe.sources[at + 1 :]
            )


def _replaced(recipe: Recipe, number: int, other: int) -> Recipe:
    """Every reader of result `number` reads `other` instead."""

    def text(step: Step) -> Step:
        return step._replace(text=re.sub(r"\bt%d\b" % number, "t%d" % other, step.text))

    fetches = tuple(sorted({other if n == number else n for n in recipe.fetches}))
    return _without_unread(recipe._replace(steps=tuple(map(text, recipe.steps)), fetches=fetches))


def _without_unread(recipe: Recipe) -> Recipe:
    """Without the steps that no fetch needs; sources stay, their values depend on their place."""
    first = len(recipe.sources)
    needed, stack = set(), list(recipe.fetches)
    while stack:
        n = stack.pop()
        if n not in needed:
            needed.add(n)
            if n >= first:
                stack.extend(recipe.steps[n - first].reads)
    kept = [at for at in range(len(recipe.steps)) if at + first in needed]
    new = {n: n for n in range(first)}
    new.update({at + first: first + i for i, at in enumerate(kept)})

    def renamed(step: Step) -> Step:
        return step._replace(text=re.sub(r"\bt(\d+)\b", lambda m: "t%d" % new[int(m.group(1))], step.text))

    steps: Tuple[Step, ...] = tuple(renamed(recipe.steps[at]) for at in kept)
    return recipe._replace(steps=steps, fetches=tuple(new[n] for n in recipe.fetches))
