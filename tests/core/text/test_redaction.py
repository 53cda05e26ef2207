"""Credentials of clusters are recognised wherever a text is shown, and masked in logs whichever way settings
are written.
"""

import base64

import pytest

from prime_train.text.redaction import HIDDEN, masks, redacted

TOKEN = "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl-x_y"


def test_the_token_of_a_service_account_is_not_shown() -> None:
    assert redacted(f"Authorization: Bearer {TOKEN}, again") == f"Authorization: Bearer {HIDDEN}, again"


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY"])
def test_a_private_key_in_a_kubeconfig_is_not_shown_and_a_certificate_is(kind: str) -> None:
    def data(name: str) -> str:
        return base64.b64encode(f"-----BEGIN {name}-----\nMIIB\n-----END {name}-----\n".encode()).decode()

    assert redacted(f"client-key-data: {data(kind)}") == f"client-key-data: {HIDDEN}"
    assert redacted(f"x: {data('CERTIFICATE')}") == f"x: {data('CERTIFICATE')}"


def test_of_a_secret_with_one_line_the_line_is_masked_however_short_it_is() -> None:
    assert masks("abc\n") == ["abc"]


def test_of_settings_every_line_that_says_something_and_every_credential_is_masked() -> None:
    assert masks(f"users:\n-\n  token: '{TOKEN}'\n") == ["users:", f"token: '{TOKEN}'", TOKEN]
    assert masks(f'{{"user":{{"token":"{TOKEN}"}}}}') == [f'{{"user":{{"token":"{TOKEN}"}}}}', TOKEN]
