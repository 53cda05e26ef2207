"""A control plane that issues keys by a role assumes that role once before it serves."""

from tests.buckets import url_of
from tests.cli.shell import Shell
from tests.fakes.http import Response, ScriptedServer
from tests.fakes.s3_servers import S3Server

DENIED = b"<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
SERVE = ("serve", "--port", "0", "--no-watch")


def role(server: S3Server) -> dict[str, str]:
    """Return the variables that name a role and a bucket that can be reached, for nobody here may ask a
    server of Amazon's.
    """
    return {
        "PRIME_TRAIN_BUCKET": url_of(server, "pod-credentials"),
        "PRIME_TRAIN_POD_ROLE": "arn:aws:iam::123456789012:role/pods",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "the-secret",
    }


def test_a_role_that_cannot_be_taken_is_reported_before_anything_is_served(
    shell: Shell, ministack: S3Server
) -> None:
    with ScriptedServer(Response(403, DENIED)) as sts:
        done = shell.run(*SERVE, **role(ministack), AWS_ENDPOINT_URL_STS=sts.url)
    assert done.returncode == 4, done.stderr
    assert "the role in PRIME_TRAIN_POD_ROLE cannot be assumed: sts: AccessDenied" in done.stderr
    assert "fix: " in done.stderr
    assert "serving" not in done.stdout


def test_where_it_is_not_known_it_is_served(shell: Shell, ministack: S3Server) -> None:
    with shell.started(
        *SERVE, until="serving ", **role(ministack), AWS_ENDPOINT_URL_STS="http://127.0.0.1:9"
    ):
        assert (
            "it is not known whether the role in PRIME_TRAIN_POD_ROLE can be assumed: sts: "
            "EndpointConnectionError" in shell.output
        )
        assert "the-secret" not in shell.output


def test_the_doctor_says_whether_a_machine_could_destroy_its_run_and_how_to_change_that(
    shell: Shell, ministack: S3Server
) -> None:
    ministack.create_bucket("kept-versions")
    url = f"s3://kept-versions/here?endpoint={ministack.url}&region={ministack.region}"
    given = {"PRIME_TRAIN_BUCKET": url, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "the-secret"}
    done = shell.run("doctor", **given)
    assert done.returncode == 0, done.stdout
    assert (
        "off    bucket: kept-versions keeps no versions, so a machine can delete the checkpoints of its own "
        "run for good; " in done.stdout
    )
    assert "put-bucket-versioning --bucket kept-versions" in done.stdout
    ministack.client().put_bucket_versioning(
        Bucket="kept-versions", VersioningConfiguration={"Status": "Enabled"}
    )
    assert "well   bucket\n" in shell.run("doctor", **given).stdout
    assert "bucket" not in shell.ok("doctor")
