"""A control plane that lends keys by a role takes that role once before it serves."""

from tests.agent.test_control import answering
from tests.cli.shell import Shell

ROLE = {
    "PRIME_TRAIN_BUCKET": "s3://training",
    "PRIME_TRAIN_POD_ROLE": "arn:aws:iam::123456789012:role/pods",
    "AWS_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "id",
    "AWS_SECRET_ACCESS_KEY": "the-secret",
}
DENIED = b"<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
SERVE = ("serve", "--port", "0", "--no-watch")


def test_a_role_that_can_not_be_taken_is_told_before_anything_is_served(shell: Shell) -> None:
    with answering(403, DENIED) as sts:
        done = shell.run(*SERVE, **ROLE, AWS_ENDPOINT_URL_STS=sts)
    assert done.returncode == 4, done.stderr
    assert "the role that PRIME_TRAIN_POD_ROLE names cannot be taken: sts: AccessDenied" in done.stderr
    assert "fix: " in done.stderr
    assert "serving" not in done.stdout


def test_where_it_is_not_known_it_is_served(shell: Shell) -> None:
    with shell.started(*SERVE, until="serving ", **ROLE, AWS_ENDPOINT_URL_STS="http://127.0.0.1:9"):
        assert "whether the role that PRIME_TRAIN_POD_ROLE names can be taken is not known: sts: EndpointConnectionError" in shell.said
        assert "the-secret" not in shell.said
