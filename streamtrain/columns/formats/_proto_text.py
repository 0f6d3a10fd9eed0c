"""Messages of a .proto file's text, as protobuf_schema has them: proto2, proto3 and editions.

https://protobuf.dev/reference/protobuf/proto3-spec/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<token>\.?[A-Za-z_][\w.]*|0[xX][0-9a-fA-F]+|[0-9][\w.+-]*"""
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[{}\[\]<>()=;,:/.+-])""",
    re.DOTALL,
)
_SCALARS = frozenset((
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
    "sfixed64", "bool", "string", "bytes",
))  # fmt: skip
_NAME = re.compile(r"[A-Za-z_]\w*")
_DEEPEST = 64


def text_messages(text: str, imported: Mapping[str, list[dict[str, Any]]] | None = None) -> dict[str, Any]:
    """{"messages", "enums"} with every type's full name. ValueError says what is wrong, and in which line.

    `imported`: what the files that it imports have given; they are no part of it.
    """
    reader = _Reader(text)
    reader.file()
    others = imported or {"messages": [], "enums": []}
    enums = {each["name"] for each in (*reader.enums, *others["enums"])}
    messages = {each["name"] for each in (*reader.messages, *others["messages"])}
    for scope, field in reader.typed:
        _resolve(enums, messages, scope, field)
    return {"messages": reader.messages, "enums": reader.enums}


def _resolve(enums: set[str], messages: set[str], scope: str, field: dict[str, Any]) -> None:
    """A type's name as its field gives it → its full name, found from the innermost scope outwards."""
    given = field["of"]
    scopes = [scope.rsplit(".", cut)[0] if cut else scope for cut in range(scope.count(".") + 1)] if scope else []
    candidates = [given[1:]] if given.startswith(".") else [*(f"{each}.{given}" for each in scopes), given]
    found = next((each for each in candidates if each in enums or each in messages), candidates[-1])
    if found == "google.protobuf.Timestamp":
        field["type"] = "timestamp"
        del field["of"]
        field.update({} if field.get("repeated") else {"presence": True})
        return
    field["type"], field["of"] = "enum" if found in enums else "message", found
    if field["type"] == "message" and not field.get("repeated"):
        field["presence"] = True


class _Reader:
    """Reads a file once; `typed`: fields whose types are names yet, with the scope each stands in."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, int]] = []  # each with the offset where it begins
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self._wrong("a .proto", text[at : at + 20], at)
            if match["token"]:
                self._tokens.append((match["token"], match.start("token")))
            at = match.end()
        self._at = 0
        self._syntax, self._implicit = "proto2", False
        self.messages: list[dict[str, Any]] = []
        self.enums: list[dict[str, Any]] = []
        self.typed: list[tuple[str, dict[str, Any]]] = []

    def _wrong(self, expected: str, got: str, at: int) -> NoReturn:
        line = self._text.count("\n", 0, at) + 1
        raise ValueError(f"line {line}: expected {expected}, got {got!r}")

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, expected: str) -> None:
        if self._next() != expected:
            self._refuse(repr(expected))

    def _refuse(self, expected: str) -> NoReturn:
        """Raises the error for a last token that is not `expected`."""
        if self._at > len(self._tokens):
            self._wrong(expected, "the end", self._tokens[-1][1] if self._tokens else 0)
        self._wrong(expected, *self._tokens[self._at - 1])

    def _name(self, what: str) -> str:
        token = self._next()
        if not _NAME.fullmatch(token):
            self._refuse(what)
        return token

    def _number(self) -> int:
        sign = -1 if self._peek() == "-" else 1
        if sign < 0:
            self._next()
        token = self._next()
        try:
            is_octal = len(token) > 1 and token[0] == "0" and token.isdigit()
            return sign * int(token, 8 if is_octal else 0)
        except ValueError:
            self._refuse("a number")

    def file(self) -> None:
        package = ""
        place = 0
        while word := self._next():
            if word == "syntax":
                self._expect("=")
                self._syntax = self._next()[1:-1]
                self._expect(";")
                if self._syntax not in ("proto2", "proto3"):
                    self._wrong('"proto2" or "proto3"', self._syntax, self._tokens[self._at - 1][1])
                self._implicit = self._syntax == "proto3"
            elif word == "edition":
                self._syntax, self._implicit = "editions", False
                self._past(";")
            elif word == "package":
                package = self._next()
                self._expect(";")
            elif word == "option":
                self._implicit = self._presence(self._until(";"), self._implicit)
            elif word == "import":
                self._past(";")
            elif word == "message":
                self._message(package, [place], 0)
                place += 1
            elif word == "enum":
                self._enum(package)
            elif word in ("service", "extend"):
                self._past_block()
            elif word != ";":
                self._refuse("a message, an enum, or another statement of a .proto")

    def _message(self, scope: str, index: list[int], depth: int) -> None:
        if depth > _DEEPEST:
            self._refuse(f"messages nested at most {_DEEPEST} deep")
        name = ".".join(filter(None, (scope, self._name("a message's name"))))
        message: dict[str, Any] = {"name": name, "index": index, "fields": []}
        self.messages.append(message)
        inside = 0

        def nest(read: Callable[[list[int]], None]) -> None:
            nonlocal inside
            read([*index, inside])
            inside += 1

        self._expect("{")
        while (word := self._next()) != "}":
            if word == "message":
                nest(lambda place: self._message(name, place, depth + 1))
            elif word == "enum":
                self._enum(name)
            elif word in ("option", "reserved", "extensions"):
                self._past(";")
            elif word == "extend":
                self._past_block()
            elif word == "oneof":
                oneof = self._name("a oneof's name")
                self._expect("{")
                while (word := self._next()) != "}":
                    if word == "option":
                        self._past(";")
                    elif word != ";":
                        message["fields"].append(self._field(word, name, oneof))
            elif word == "map" and self._peek() == "<":
                nest(lambda place: message["fields"].append(self._map(name, place)))
            elif word != ";":
                message["fields"].append(self._field(word, name))

    def _field(self, word: str, scope: str, oneof: str = "") -> dict[str, Any]:
        label = word if word in ("optional", "required", "repeated") and not oneof else ""
        field = self._typed(self._next() if label else word, scope)
        field = self._numbered(field)
        options = self._options()
        if label == "repeated":
            field["repeated"] = True
            return field
        implicit = self._presence(options, self._implicit)
        if oneof or label or not implicit:
            field["presence"] = True
        if oneof:
            field["oneof"] = oneof
        return field

    def _typed(self, kind: str, scope: str) -> dict[str, Any]:
        if kind == "group" or not _NAME.match(kind.lstrip(".")):
            self._refuse("a field's type, which is no group")
        if kind in _SCALARS:
            return {"type": kind}
        field = {"type": "message", "of": kind}
        self.typed.append((scope, field))
        return field

    def _numbered(self, field: dict[str, Any]) -> dict[str, Any]:
        field["name"] = self._name("a field's name")
        self._expect("=")
        field["number"] = self._number()
        return field

    def _map(self, scope: str, index: list[int]) -> dict[str, Any]:
        """A map is many of a message of its own, as protoc makes it."""
        self._expect("<")
        entry: dict[str, Any] = {"name": "", "index": index, "fields": []}
        for name, number, closing in (("key", 1, ","), ("value", 2, ">")):
            field = self._typed(self._next(), scope)
            field.update({"name": name, "number": number, **({} if self._implicit else {"presence": True})})
            entry["fields"].append(field)
            self._expect(closing)
        field = self._numbered({"type": "message", "of": ""})
        self._options()
        camel = "".join(part[:1].upper() + part[1:] for part in field["name"].split("_"))
        entry["name"] = field["of"] = f"{scope}.{camel}Entry"
        self.messages.append(entry)
        return {**field, "repeated": True}

    def _enum(self, scope: str) -> None:
        name = ".".join(filter(None, (scope, self._name("an enum's name"))))
        values: list[list[Any]] = []
        self._expect("{")
        while (word := self._next()) != "}":
            if word in ("option", "reserved") and self._peek() != "=":
                self._past(";")
            elif word != ";":
                if not _NAME.fullmatch(word):
                    self._refuse("an enum's value")
                self._expect("=")
                values.append([word, self._number()])
                self._options()
        self.enums.append({"name": name, "values": values})

    def _options(self) -> list[str]:
        """Returns the tokens in brackets, if there are any, and reads up to the statement's end."""
        found = []
        if self._peek() == "[":
            self._next()
            found = self._until("]")
        self._expect(";")
        return found

    def _presence(self, options: list[str], otherwise: bool) -> bool:
        """Returns True if the options in an edition's file make presence implicit; `otherwise` if they do not say."""
        if self._syntax == "editions" and "features.field_presence" in options:
            return "IMPLICIT" in options[options.index("features.field_presence") :][:3]
        return otherwise

    def _until(self, closing: str) -> list[str]:
        found = []
        depth = 0
        while depth or self._peek() != closing:
            token = self._next()
            if not token:
                self._refuse(repr(closing))
            depth += (token in ("{", "[")) - (token in ("}", "]"))
            found.append(token)
        self._next()
        return found

    def _past(self, closing: str) -> None:
        self._until(closing)

    def _past_block(self) -> None:
        while self._peek() not in ("{", ""):
            self._next()
        self._expect("{")
        self._until("}")
