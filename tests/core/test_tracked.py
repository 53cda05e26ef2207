"""The address of a run's page on its tracker."""

from urllib.parse import quote, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.core.run import Run
from prime_train.core.tracked import page_url
from tests import builders as b
from tests.core.given import PROPERTY


def of(**wandb: str) -> str:
    return page_url(b.run(spec=b.spec(wandb={"project": "train"} | wandb)))


def test_the_page_of_a_run_is_where_its_project_is() -> None:
    assert of(entity="acme") == "https://wandb.ai/acme/train/runs/tiny-1"
    run = b.run(spec=b.spec(wandb={"project": "a b"}))
    assert page_url(run, entity="ann", site="https://wandb.acme.test/") == "https://wandb.acme.test/ann/a%20b/runs/tiny-1"


@pytest.mark.parametrize("run", [b.run(), b.run(spec=b.spec(wandb={"project": "train"}))])
def test_there_is_no_page_where_there_is_no_tracker_or_nobody_says_whose_it_is(run: Run) -> None:
    assert page_url(run) == ""


@PROPERTY
@given(project=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_any_name_is_one_piece_of_the_path(project: str) -> None:
    url = of(entity="acme", project=project)
    assert url == f"https://wandb.ai/acme/{quote(project, safe='')}/runs/tiny-1"
    assert unquote(urlsplit(url).path) == f"/acme/{project}/runs/tiny-1"
