"""Detection and masking of secrets: a value that may be a secret is never repeated."""

import re

HIDDEN = "(hidden)"

LOOKS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"hf_[A-Za-z0-9]{16,}"  # Hugging Face
    r"|sk-[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"  # AWS
    r"|gh[opsu]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}"  # GitHub
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"  # Slack
    r"|pit_[A-Za-z0-9]{16,}"  # Prime Intellect
    r"|rpa_[A-Za-z0-9]{16,}"  # RunPod
    r"|secret_[A-Za-z0-9_-]{1,100}_[0-9a-f]{32}\.[A-Za-z0-9]{16,}"  # Lambda Cloud
    r"|VAST_API_KEY=[\"']?[0-9a-f]{64}(?![0-9a-f])"  # Vast.ai
    r"|pt_market_[0-9a-f]{64}"  # prime-train's own key for reading the market
    r"|wandb_v\d+_[A-Za-z0-9_]{16,}"  # Weights & Biases
    r"|AIza[A-Za-z0-9_-]{30,}"  # Google
    r"|glpat-[A-Za-z0-9_-]{16,}"  # GitLab
    r"|hooks\.slack\.com/services/[A-Z0-9]+/[A-Z0-9]+/[A-Za-z0-9]{8,}"
    r"|(?:wandb login (?:--\S+ )*|WANDB_API_KEY=[\"']?)[0-9a-f]{40}(?![0-9a-f])"
    r"|AWS_SECRET_ACCESS_KEY=[\"']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s]*"
    r"|eyJhbGciOi[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"  # Kubernetes: the token of a service account
    # a private key in a kubeconfig
    r"|LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFURSBLRVk|BFQyBQUklWQVRFIEtFWS|BQUklWQVRFIEtFWS)[A-Za-z0-9+/=]*"
    r")"
    # user:password@host, unless the password is a variable
    r"|(?<=://)[^/\s:@]+:(?!\$\{?\w+\}?@|<[\w-]+>@)[^/\s@]{3,}(?=@)"
)


_IN_SETTINGS = re.compile(r"""\b(?:token|client-key-data)["']?\s*:\s*["']?([^\s"',}\]]{8,})""")
"""The credentials in a kubeconfig, whether it is written in lines or in one."""
LINE_CHARS_MIN = 4


def masks(value: str) -> list[str]:
    """Return what to mask in a log, which is masked line by line, so that neither a secret's value nor a
    credential in it is shown. Of several lines, those like `{` hide nothing and would mask half of the log.
    """
    lines = [line.strip() for line in value.splitlines() if line.strip()]
    whole = [line for line in lines if len(line) >= LINE_CHARS_MIN] if len(lines) > 1 else lines
    return [*whole, *_IN_SETTINGS.findall(value)]


def redacted(text: str) -> str:
    """Return the text with everything that looks like a secret replaced by `HIDDEN`."""
    return LOOKS.sub(HIDDEN, text)
