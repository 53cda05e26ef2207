"""Files made to slow down or break their reader, each up to 1 MiB: their bytes, and the codes of required
findings.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.checking import Kind

MIB = 1024 * 1024
NEARLY_BYTES = 300_000
"""Size that is enough to detect quadratic growth."""
RUN = "name: a\ntrainer: {command: python x}\nbudget: {usd: 1}\n"
RL = '[orchestrator]\nbatch_size = 8\n[model]\nname = "Qwen/Qwen3-4B"\n[trainer]\n'


@dataclass(frozen=True)
class Hostile:
    """A hostile file. `codes` empty: any findings are fine if nothing fails."""

    name: str
    kind: Kind
    make: Callable[[], str | bytes]
    codes: frozenset[str] = frozenset()

    def data(self) -> bytes:
        made = self.make()
        return made if isinstance(made, bytes) else made.encode()[:MIB]


def filled(start: str, piece: str, end: str = "", size: int = MIB) -> str:
    """Return `piece` repeated until the text has the maximum size."""
    return start + piece * ((size - len(start) - len(end)) // len(piece.encode())) + end


def numbered(start: str, piece: str, count: int, end: str = "") -> str:
    """Return `piece` with {n} replaced by each number, as many as fit."""
    return (
        start
        + "".join(piece.replace("{n}", str(n)) for n in range(count))[: MIB - len(start) - len(end)]
        + end
    )


def yaml(name: str, make: Callable[[], str | bytes], *codes: str) -> Hostile:
    return Hostile(name, "yaml", make, frozenset(codes))


def toml(name: str, make: Callable[[], str | bytes], *codes: str) -> Hostile:
    return Hostile(name, "toml", make, frozenset(codes))


def both(name: str, make: Callable[[], str | bytes], *codes: str) -> tuple[Hostile, Hostile]:
    return yaml(name, make, *codes), toml(name, make, *codes)


def nearly(piece: str) -> tuple[Hostile, Hostile]:
    """Yield the text in a value of either kind."""
    return (
        yaml(
            f"nearly secrets: {piece[:16]}",
            lambda: filled(f"{RUN}environment:\n  A: '", piece, "'\n", NEARLY_BYTES),
        ),
        toml(f"nearly secrets: {piece[:16]}", lambda: filled(f"{RL}seq_len = '", piece, "'\n", NEARLY_BYTES)),
    )


def nearly_named(piece: str) -> Hostile:
    return yaml(
        f"nearly the name of a secret: {piece}",
        lambda: filled(f"{RUN}environment:\n  '", piece, "': abcdefghijk\n", NEARLY_BYTES),
    )


COMMAND = "name: a\nbudget: {usd: 1}\ntrainer:\n  command: python pretrain.py "
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
SECRETS = (
    *(
        "hf_" + "a" * 15 + " ",
        "sk-" + "-" * 15 + " ",
        "AKIA" + "A" * 15 + "a",
        "-----BEGIN ",
        "://a:b",
        "://" + "a" * 99 + ":",
    ),
    *("://a:bcd/", "xoxb-", "github_pat_", "TOKEN_", "API_KEY"),
)
"""Texts that repeatedly look nearly like a secret."""

HOSTILE = (
    # ------------------------------------------------------------------------------------------------------
    # size and encoding
    *both("nothing but zeros", lambda: bytes(MIB), "PT003"),
    *both("a zero in a config", lambda: b"name\x00: a", "PT003"),
    *both("no UTF-8", lambda: b"name = '\xff\xfe'\n", "PT003"),
    *both("half a character at the end", lambda: b"a" * 9 + b"\xe2\x82", "PT003"),
    *both("UTF-16", lambda: RUN.encode("utf-16"), "PT003"),
    *both("as large as is read", lambda: filled("#", "#")),
    *both("one byte more than is read", lambda: b"#" * (MIB + 1), "PT002"),
    *both("empty", lambda: b""),
    *both("a mark at the start, and the line ends of Windows", lambda: "\ufeff" + RUN.replace("\n", "\r\n")),
    *both("marks everywhere", lambda: filled("", "\ufeff")),
    *both("nothing but line ends", lambda: filled("", "\n")),
    *both("nothing but line ends of Windows", lambda: filled("", "\r\n")),
    *both("nothing but spaces", lambda: filled("", " ")),
    *both("nothing but tabs", lambda: filled("", "\t")),
    *both("nothing but comments", lambda: filled("", "#\n")),
    *both("nothing but single quotes", lambda: filled("", "'")),
    *both("nothing but double quotes", lambda: filled("", '"')),
    *both("nothing but backslashes in quotes", lambda: filled('a = "', "\\")),
    # --------------------------------------------------------------------------------------------------------
    # depth
    yaml("lists in lists", lambda: filled("a: ", "["), "PT008"),
    yaml("lists in lists, by dashes", lambda: filled("a:\n ", "- "), "PT008"),
    yaml("keys in keys", lambda: filled("", "{a: "), "PT008"),
    yaml("keys in keys, by spaces", lambda: "".join(" " * n + "a:\n" for n in range(1400)), "PT008"),
    yaml("keys that are no words", lambda: filled("", "? "), "PT007"),
    yaml("brackets that close", lambda: filled("", "]"), "PT004"),
    toml("lists in lists", lambda: filled("a = ", "["), "PT008"),
    toml("keys in keys", lambda: filled("a = ", "{a = "), "PT008"),
    toml("a key of many words", lambda: filled("a", ".a", " = 1"), "PT008"),
    toml("a section of many words", lambda: filled("[a", ".a", "]"), "PT008"),
    toml("sections that do not end", lambda: filled("", "["), "PT004"),
    toml(
        "keys in keys, just not too many",
        lambda: numbered("", "[a{n}.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p]\nz.y.x = 1\n", 20_000),
        "PT008",
    ),
    # -------------------------------------------------------------------------------------------------------
    # anchors and merges
    yaml("a billion laughs", lambda: BOMB, "PT008"),
    yaml("an alias inside of itself", lambda: "a: &a [*a]\n", "PT008"),
    yaml("aliases of a long text", lambda: f"a: &a {'x' * 900_000}\nb: [{'*a, ' * 99}]\n"),
    yaml("aliases", lambda: filled("a: &a 1\nb: [", "*a, "), "PT008"),
    yaml("anchors", lambda: numbered("a: [", "&a{n} x, ", 200_000, "]"), "PT008"),
    yaml("merges", lambda: "a: &a {b: 1}\n" + "c: {<<: *a}\n" * 90, "PT007"),
    yaml("tags that make objects", lambda: "name: !!python/object/apply:os.system [ls]\n", "PT007"),
    yaml("tags", lambda: filled("a: [", "!!int x, ", "]")),
    yaml("a long tag", lambda: filled("a: !<", "x", "> 1")),
    yaml("directives", lambda: filled("", "%TAG ! x\n")),
    yaml("documents", lambda: filled(RUN, "---\n"), "PT005"),
    yaml("documents that are empty", lambda: filled("", "---\n")),
    # --------------------------------------------------------------------------------------------------------
    # many of a kind
    yaml("keys", lambda: numbered("", "k{n}: 1\n", 100_000), "PT008"),
    yaml(
        "keys, just not too many",
        lambda: numbered(RUN, "some_unknown_key_number_{n}_that_is_near_to_none: 1\n", 2400),
        "PT010",
    ),
    yaml("long keys, just not too many", lambda: numbered(RUN, "k{n}" + "a" * 200 + ": 1\n", 2400), "PT010"),
    yaml(
        "keys in the trainer",
        lambda: numbered("name: a\nbudget: {usd: 1}\ntrainer:\n  command: x\n", "  step{n}: 1\n", 2400),
        "PT010",
    ),
    yaml("one key again and again", lambda: filled("", "name: a\n"), "PT008"),
    yaml("one key, just not too often", lambda: RUN + "name: a\n" * 2400, "PT006"),
    yaml("items", lambda: filled("a: [", "1,", "]"), "PT008"),
    yaml("items, just not too many, each wrong", lambda: f"{RUN}verification: [{'1,' * 4900}]\n", "PT012"),
    yaml("items with keys, each wrong", lambda: f"{RUN}verification: [{'{pth: 1},' * 1600}]\n", "PT010"),
    yaml(
        "variables that are secrets",
        lambda: numbered(RUN + "environment:\n", "  A_TOKEN_{n}: abcdefghijklmnop{n}\n", 2400),
        "PT020",
    ),
    yaml(
        "wrong names of variables", lambda: numbered(RUN + "environment:\n", "  '{n} a': x\n", 2400), "PT013"
    ),
    yaml("secrets", lambda: numbered(RUN + "secrets: [", "hf_" + "a" * 30 + "{n}, ", 4500, "]\n"), "PT020"),
    yaml("wrong GPUs", lambda: numbered(RUN + "hardware: {gpus: [", "H{n}_80GB, ", 4900, "]}\n")),
    yaml("ignores", lambda: filled(RUN, "# prime-train: ignore[HW101] x\n"), "PT092"),
    yaml("ignores of nothing", lambda: filled(RUN, "# prime-train: ignore\n"), "PT091"),
    yaml("an ignore of many codes", lambda: filled(RUN + "# prime-train: ignore[", "PT010,", "] x\n")),
    yaml(
        "ignores of as many codes as are read",
        lambda: RUN + ("# prime-train: ignore[" + "Z," * 950 + "] x\n") * 500,
        "PT091",
    ),
    yaml("an ignore with spaces", lambda: filled(RUN + "#", " ", "prime-train: ignore\n")),
    toml("keys", lambda: numbered("", "k{n} = 1\n", 100_000), "PT008"),
    toml(
        "keys, just not too many",
        lambda: numbered(RL, "some_unknown_key_number_{n}_that_is_near_to_none = 1\n", 4900),
        "PR301",
    ),
    toml("long keys, just not too many", lambda: numbered(RL, "k{n}" + "a" * 90 + " = 1\n", 4900), "PR301"),
    toml("keys under vLLM", lambda: numbered(RL + "[inference.vllm]\n", "max_model_len_{n} = 1\n", 4900)),
    toml("one key again and again", lambda: filled("", "a = 1\n"), "PT008"),
    toml("one key, just not too often", lambda: "a = 1\n" * 4900, "PT006"),
    toml("one section again and again", lambda: "[a]\n" * 4900, "PT006"),
    toml("sections", lambda: numbered("", "[a{n}]\n", 100_000), "PT008"),
    toml("tables in a list", lambda: filled("", "[[a]]\n"), "PT008"),
    toml("environments", lambda: RL + "[[orchestrator.train.source]]\nname = 'a'\nid = 'b'\n" * 1600),
    toml("items", lambda: filled("a = [", "1,", "]"), "PT008"),
    toml("ignores", lambda: filled(RL, "# prime-train: ignore[PR301] x\n"), "PT092"),
    # --------------------------------------------------------------------------------------------------------
    # long things
    yaml("a long key", lambda: filled(RUN, "k", ": 1\n")),
    yaml("a long key in quotes", lambda: filled(RUN + "'", "k", "': 1\n"), "PT004"),
    yaml("a long name", lambda: filled("trainer: {command: x}\nbudget: {usd: 1}\nname: ", "A"), "PT013"),
    yaml(
        "a long number", lambda: filled("name: a\ntrainer: {command: x}\nbudget: {usd: ", "9", "}\n"), "PT012"
    ),
    yaml("a long fraction", lambda: filled("name: a\ntrainer: {command: x}\nbudget: {usd: 0.", "9", "}\n")),
    yaml(
        "a long power",
        lambda: filled("name: a\ntrainer: {command: x}\nbudget: {usd: 1e", "9", "}\n"),
        "PT012",
    ),
    yaml(
        "a number of underscores",
        lambda: filled("name: a\ntrainer: {command: x}\nbudget: {usd: 1", "_", "}\n"),
    ),
    yaml("a long command", lambda: filled(COMMAND, "x ", "\n")),
    yaml("a long command of flags", lambda: filled(COMMAND, "--a.b=c ", "\n")),
    yaml("a command of flags as long as is read", lambda: COMMAND + "--a=c " * 1600 + "\n"),
    yaml(
        "a command of settings as long as is read",
        lambda: COMMAND + "a.b=c " * 3200 + "\n",
    ),
    yaml("a long command of quotes", lambda: filled(COMMAND, "'a' ", "\n")),
    yaml(
        "overrides",
        lambda: numbered(
            "name: a\nbudget: {usd: 1}\ntrainer: {kind: prime_rl, prime_rl: {config: a.toml, overrides: [",
            "--a.b{n}, 1, ",
            2400,
            "]}}\n",
        ),
    ),
    yaml(
        "a long pattern",
        lambda: filled(RUN + "health: {log_rules: [{pattern: '", "(a+)+", "', cause: log_rule}]}\n"),
        "PT013",
    ),
    yaml(
        "patterns",
        lambda: f"{RUN}health:\n  log_rules:\n" + f"    - pattern: '{'(a+)+' * 99}'\n" * 1200,
        "PT013",
    ),
    yaml(
        "a pattern of wide ranges",
        lambda: RUN + "health: {log_rules: [{pattern: '(?i)" + r"[\x00-\U0010ffff]" * 25 + "'}]}\n",
        "PT013",
    ),
    yaml("a long text of lines", lambda: filled(RUN + "environment:\n  A: |\n", "    x\n")),
    yaml(
        "a line of much that is wrong",
        lambda: filled(RUN + "hardware: {", "aaaaaaaaaaa: 1, ", "}\n", 30_000),
        "PT010",
    ),
    toml("a long key", lambda: filled(RL, "k", " = 1\n"), "PT008"),
    toml("a long key in quotes", lambda: filled(RL + '"', "\\u0041", '" = 1\n'), "PT008"),
    toml("a long text", lambda: filled(RL + "seq_len = '", "A", "'\n")),
    toml("a long text of escapes", lambda: filled(RL + 'seq_len = "', "\\n", '"\n')),
    toml("a long text of quotes", lambda: filled(RL + 'seq_len = """', '""\\"', '"""\n')),
    toml("a text of lines without an end", lambda: filled('a = """', '""\n')),
    toml("a long number", lambda: filled("a = ", "9"), "PT008"),
    toml("a number longer than Python reads", lambda: f"{RL}seq_len = {'9' * 990}\n"),
    toml("a large number in another base", lambda: f"{RL}seq_len = 0x{'f' * 990}\n"),
    toml("numbers that are none", lambda: RL + "seq_len = nan\nlr = inf\n[trainer.model]\nseq_len = -inf\n"),
    toml("dates", lambda: RL + "seq_len = 2026-01-01\nlr = 12:00:00\nx = 2026-01-01T00:00:00Z\n"),
    toml("a date that is none", lambda: RL + "seq_len = 2026-99-99\n", "PT004"),
    toml("a line of much that is wrong", lambda: filled(RL + "a = {", "aaaaaaaa = 1, ", "}\n", 100_000)),
    # ------------------------------------------------------------------------------------------------- what
    # is nearly a secret
    *(
        yaml(
            f"nearly secrets: {piece[:16]!r}",
            lambda piece=piece: filled(RUN + "environment:\n  A: '", piece, "'\n"),  # type: ignore[misc]
        )
        for piece in SECRETS
    ),
    *(
        toml(f"nearly secrets: {piece[:16]!r}", lambda piece=piece: filled(RL + "seq_len = '", piece, "'\n"))  # type: ignore[misc]
        for piece in SECRETS
    ),
    *(hostile for piece in SECRETS for hostile in nearly(piece)),
    *(nearly_named(piece) for piece in ("TOKEN_", "API_", "_")),
)
