"""The settings for an account at Prime Intellect."""

import json
from pathlib import Path

import pytest

from prime_train.errors import PermanentError
from prime_train.providers.prime.settings import PrimeSettings, read_settings

KEY = "pit_0123456789abcdef"


def home(folder: Path, **content: object) -> Path:
    (folder / ".prime").mkdir()
    (folder / ".prime" / "config.json").write_text(json.dumps(content))
    return folder


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    there = home(tmp_path, api_key="pit_of_the_file", team_id="t1", base_url="https://other.example")
    environment = {"PRIME_API_KEY": KEY, "PRIME_TEAM_ID": "t2", "PRIME_API_BASE_URL": "https://api.example"}

    assert read_settings(environment, there) == PrimeSettings(KEY, "t2", "https://api.example")


def test_the_file_of_the_log_in_is_enough(tmp_path: Path) -> None:
    assert read_settings({}, home(tmp_path, api_key=KEY, team_id=None)) == PrimeSettings(KEY)


def test_without_a_file_the_key_alone_is_enough(tmp_path: Path) -> None:
    assert (
        read_settings({"PRIME_API_KEY": KEY, "PRIME_TEAM_ID": " "}, tmp_path).base_url
        == "https://api.primeintellect.ai"
    )


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example/api/v1",
        "https://api.example/api/v1/",
        "https://api.example/",
        "https://api.example",
    ],
)
def test_the_address_is_the_same_with_and_without_its_version(tmp_path: Path, url: str) -> None:
    assert (
        read_settings({"PRIME_API_KEY": KEY, "PRIME_BASE_URL": url}, tmp_path).base_url
        == "https://api.example"
    )


@pytest.mark.parametrize(
    "url",
    [
        "api.example",
        "ftp://api.example",
        "https://me:pw@api.example",
        "https://",
        "https://[x",
        "https://a?b=c",
    ],
)
def test_an_address_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(PermanentError, match="PRIME_API_BASE_URL"):
        read_settings({"PRIME_API_KEY": KEY, "PRIME_API_BASE_URL": url}, tmp_path)


def test_the_key_is_not_sent_unencrypted_but_to_this_machine(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="write https"):
        read_settings({"PRIME_API_KEY": KEY, "PRIME_API_BASE_URL": "http://api.example"}, tmp_path)
    assert read_settings(
        {"PRIME_API_KEY": KEY, "PRIME_API_BASE_URL": "http://127.0.0.1:8/api/v1"}, tmp_path
    ).base_url


def test_without_a_key_it_is_reported_where_one_goes(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="PRIME_API_KEY"):
        read_settings({}, tmp_path)


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY} x", "pit_\u00e9"])
def test_a_key_with_a_slip_of_the_hand_is_reported_without_it(tmp_path: Path, key: str) -> None:
    with pytest.raises(PermanentError) as caught:
        read_settings({"PRIME_API_KEY": key}, tmp_path)
    assert "pit_" not in str(caught.value)


def test_a_file_that_is_no_json_is_reported_without_what_is_in_it(tmp_path: Path) -> None:
    home(tmp_path)
    (tmp_path / ".prime" / "config.json").write_text(f'{{"api_key": "{KEY}"')
    with pytest.raises(PermanentError, match="is not JSON") as caught:
        read_settings({}, tmp_path)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None


def context(folder: Path, name: str, text: str = "", **content: object) -> None:
    (folder / ".prime" / "environments").mkdir(exist_ok=True)
    (folder / ".prime" / "environments" / f"{name}.json").write_text(text or json.dumps(content))


def test_the_context_that_is_named_has_its_own_key_team_and_address(tmp_path: Path) -> None:
    there = home(tmp_path, api_key="pit_of_the_file", team_id="t1", base_url="https://one.example")
    context(there, "work", api_key=KEY, team_id="t2", base_url="https://two.example/api/v1/")
    context(there, "Mine", team_id=None)
    context(there, "out", api_key=None)

    assert read_settings({}, there) == PrimeSettings("pit_of_the_file", "t1", "https://one.example")
    assert read_settings({"PRIME_CONTEXT": ""}, there).team_id == "t1"
    assert read_settings({"PRIME_CONTEXT": "work"}, there) == PrimeSettings(KEY, "t2", "https://two.example")
    assert read_settings({"PRIME_CONTEXT": "Mine"}, there) == PrimeSettings("pit_of_the_file")
    for production in ("production", "Production"):
        assert read_settings({"PRIME_CONTEXT": production}, there) == PrimeSettings("pit_of_the_file")
    with pytest.raises(PermanentError, match="there is no API key"):
        read_settings({"PRIME_CONTEXT": "out"}, there)


def test_variables_win_over_the_context(tmp_path: Path) -> None:
    there = home(tmp_path, api_key="pit_of_the_file")
    context(there, "work", api_key="pit_of_the_context", team_id="t2", base_url="https://two.example")
    environment = {"PRIME_CONTEXT": "work", "PRIME_API_KEY": KEY, "PRIME_TEAM_ID": "t3"}

    assert read_settings(environment, there) == PrimeSettings(KEY, "t3", "https://two.example")


@pytest.mark.parametrize("name", ["other", "../config", " ", "work.json"])
def test_a_context_that_is_not_there_is_not_taken_for_another_account(tmp_path: Path, name: str) -> None:
    there = home(tmp_path, api_key=KEY, team_id="t1")
    context(there, "work", api_key=KEY)
    for key in ({}, {"PRIME_API_KEY": KEY}):
        with pytest.raises(PermanentError, match="set PRIME_CONTEXT to production, work, or unset it"):
            read_settings({"PRIME_CONTEXT": name, **key}, there)


@pytest.mark.parametrize("text", ["{", "[]", "7"])
def test_a_context_that_is_not_understood_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    there = home(tmp_path, api_key=KEY)
    context(there, "work", text)
    with pytest.raises(PermanentError, match=r"work\.json is n"):
        read_settings({"PRIME_CONTEXT": "work"}, there)


def test_the_key_is_not_shown(tmp_path: Path) -> None:
    assert KEY not in repr(read_settings({"PRIME_API_KEY": KEY}, tmp_path))
