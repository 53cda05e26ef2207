"""Options that say where credentials are stored."""

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.aws.commands.stack import selected

if TYPE_CHECKING:
    from prime_train.app.home import Home
    from prime_train.app.places import KeyLocation


class PlaceName(StrEnum):
    """The name of a place on the command line."""

    HOME = "home"
    AWS = "aws"
    GITHUB = "github"


To = Annotated[
    PlaceName,
    typer.Option(
        "--to",
        help="home: for serve on this machine; aws: the secret of the functions on AWS; github: the "
        "repository's environments.",
    ),
]


def place_of(to: PlaceName, home: "Home", stack: str, region: str) -> "KeyLocation":
    from prime_train.app.key_places import InGitHub
    from prime_train.app.places import InAws, InHome

    match to:
        case PlaceName.HOME:
            return InHome(home.root, home.served, os.environ)
        case PlaceName.AWS:
            return InAws(selected(stack, region), os.environ)
        case PlaceName.GITHUB:
            return InGitHub(home.environment)
