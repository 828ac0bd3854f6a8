"""Reads the API's text form of expressions back (graphs as text, `utils.deserialize`).

On exit the expression prints as exactly the text that was read; anything else is a ValueError. Text is data:
nothing is executed.
"""

import re
from fractions import Fraction
from typing import List

from tf_autofuse.ascir_api import expression as ex

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_][A-Za-z0-9_.]*)|([-+*/(),]))", re.ASCII)
_MAX_DEPTH = 200


def parse(text: str) -> ex.Expression:
    """Raises ValueError for what `expression.text` does not print."""
    parser = _Parser(text)
    try:
        e = parser.sum()
    except (ZeroDivisionError, TypeError, KeyError) as error:
        raise parser.error(str(error))
    if parser.at != len(parser.tokens) - 1 or ex.text(e) != text:
        raise parser.error("it prints as %r" % ex.text(e)[:200])
    return e


class _Parser:
    """sum ::= product (('+'|'-') product)*; product ::= atom (('*'|'/') atom)*; atom ::= ['-'] integer |
    name | function '(' sum (',' sum)* ')' | '(' sum ')'."""

    def __init__(self, text: str):
        self.source, self.at, self.depth = text, 0, 0
        self.tokens: List[str] = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self.error("at %r" % text[position : position + 20])
            self.tokens.append(match.group().strip())
            position = match.end()
        self.tokens.append("")

    def error(self, why: str) -> ValueError:
        return ValueError("not an expression of the AscIR API: %r (%s)" % (self.source[:200], why))

    def take(self, *wanted: str) -> str:
        token = self.tokens[self.at]
        if token in wanted and token:
            self.at += 1
            return token
        return ""

    def expect(self, wanted: str) -> None:
        if not self.take(wanted):
            raise self.error("expected %r, found %r" % (wanted, self.tokens[self.at] or "the end"))

    def sum(self) -> ex.Expression:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error("nested too deeply")
        total = self.product()
        while True:
            sign = self.take("+", "-")
            if not sign:
                self.depth -= 1
                return total
            total = (ex.add if sign == "+" else ex.subtract)(total, self.product())

    def product(self) -> ex.Expression:
        total = self.atom()
        while True:
            sign = self.take("*", "/")
            if not sign:
                return total
            total = (ex.multiply if sign == "*" else ex.divide)(total, self.atom())

    def atom(self) -> ex.Expression:
        negative = bool(self.take("-"))
        token = self.tokens[self.at]
        if token.isdigit():
            self.at += 1
            return Fraction(-int(token) if negative else int(token))
        if negative:
            raise self.error("a sign before %r" % token)
        if self.take("("):
            e = self.sum()
            self.expect(")")
            return e
        if not token or token in "+-*/),":
            raise self.error("unexpected %r" % (token or "end"))
        self.at += 1
        if not self.take("("):
            return ex.symbol(token)
        arguments = [self.sum()]
        while self.take(","):
            arguments.append(self.sum())
        self.expect(")")
        if token == "Rational":
            if len(arguments) != 2 or not all(map(ex.is_integer, arguments)):
                raise self.error("Rational takes two integers")
            return arguments[0] / arguments[1]
        return ex.call(token, *arguments)
