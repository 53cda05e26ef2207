"""TOML texts of every form, in which every key and every value is a word of its own, so that its position is
where that word is.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st

DEPTH = 3


@dataclass
class Writer:
    """Writer of generated texts. `draw` makes the choices; names and values are numbered."""

    draw: st.DrawFn
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def number(self) -> int:
        self.count += 1
        return self.count

    def one_of(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def many(self, most: int) -> range:
        return range(self.draw(st.integers(0, most)))

    def key(self) -> str:
        name = f"key{self.number()}x"
        return self.one_of(
            name, f'"{name}"', f"'{name}'", f'"{name} y"', f"'{name}.y'", f'"{name}\\u00e9\\t"'
        )

    def value(self, depth: int) -> str:
        here = f"val{self.number()}x"
        texts = (
            f'"{here}"',
            f"'{here}'",
            f'"{here} # \\" \\\\"',
            f'"""{here}\n"two" quotes\n\\\n  joined"""',
            f"'''\n{here}''''",
        )
        numbers = (
            f"9{self.count:04}9",
            f"0x{self.count:04x}",
            f"9{self.count:04}.5e3",
            f"{1900 + self.count % 99}-01-01 07:32:00",
            "true",
        )
        kind = self.draw(st.integers(0, 5 if depth < DEPTH else 3))
        if kind < 2:
            return self.one_of(*texts)
        if kind < 4:
            return self.one_of(*numbers, "-inf", "+1_000", "07:32:00.5", "1979-05-27", "false", "-0.5E-2")
        return self.array(depth + 1) if kind == 4 else self.inline(depth + 1)

    def array(self, depth: int) -> str:
        gap = self.one_of("", " ", "\n  ", " # note ]\n")
        items = [f"{self.value(depth)}{gap}" for _ in self.many(3)]
        return f"[{gap}{', '.join(items)}{self.one_of('', ',') if items else ''}{gap}]"

    def inline(self, depth: int) -> str:
        return "{" + ", ".join(f" {self.dotted(2)} = {self.value(depth)} " for _ in self.many(3)) + "}"

    def dotted(self, most: int) -> str:
        return self.one_of(".", " . ").join(self.key() for _ in range(self.draw(st.integers(1, most))))

    def pairs(self) -> None:
        for _ in self.many(3):
            lead, trail = self.one_of("", "  ", "\t"), self.one_of("", "  ", " # val0 = [", "\r")
            self.lines.append(f"{lead}{self.dotted(3)}{self.one_of(' = ', '=')}{self.value(0)}{trail}")
            self.lines += [self.one_of("", "# key = 1", "   ")] if self.draw(st.booleans()) else []

    def tables(self, path: str, depth: int) -> None:
        for _ in self.many(2):
            name = f"{path}.{self.key()}" if path else self.key()
            # A table is at times spoken of after its parts, or not at all.
            order = self.draw(st.integers(0, 2))
            times = self.draw(st.integers(1, 3)) if order == 0 else 1
            for _ in range(times):
                if order < 2:
                    self.lines.append(f"[[{name}]]" if order == 0 else f" [ {name} ]  # [not]")
                    self.pairs()
                if depth < DEPTH:
                    self.tables(name, depth + 1)


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    writer = Writer(draw)
    writer.pairs()
    writer.tables("", 0)
    return "\n".join(writer.lines) + draw(st.sampled_from(("\n", "\n# end")))
