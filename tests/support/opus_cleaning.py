"""The cleaning of preprocess.sh in releases of OPUS-MT, by sed and perl themselves."""

import subprocess
from collections.abc import Sequence

SINGLE = dict(
    zip(
        "，、”“∶：？《》）！（；１」「０３２５６９７８４～’━〈〉【】％",
        ',,""::?"")!(;"""03256978' + "4~'-<>[]%",
        strict=True,
    )
)
LONGER = {"。 *": ". ", "． *": ". ", "…": "..."}


def cleaned(lines: Sequence[str]) -> list[str]:
    """Each line as it is before SentencePiece sees it."""
    rules = {**SINGLE, **LONGER}
    expressions = [f"s/{found}/{put}/g" for found, put in rules.items()]
    text = "".join(line + "\n" for line in lines).encode()
    sed = ["sed", *(part for expression in expressions for part in ("-e", expression))]
    for command in (
        sed,
        ["perl", "-C", "-pe", r"s/(?!\n)\p{C}/ /g;"],
        ["sed", "s/  */ /g;s/^ *//g;s/ *$//g"],
    ):
        environment = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        text = subprocess.run(
            command, input=text, stdout=subprocess.PIPE, check=True, env=environment
        ).stdout
    return text.decode().removesuffix("\n").split("\n")
