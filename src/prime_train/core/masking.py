"""What looks like a secret, and texts without it: a value that may be one is never repeated."""

import re

HIDDEN = "(hidden)"

LOOKS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"hf_[A-Za-z0-9]{16,}"  # Hugging Face
    r"|sk-[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"  # AWS
    r"|gh[opsu]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}"  # GitHub
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"  # Slack
    r"|AIza[A-Za-z0-9_-]{30,}"  # Google
    r"|glpat-[A-Za-z0-9_-]{16,}"  # GitLab
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r")"
    r"|(?<=://)[^/\s:@]+:[^/\s@]{3,}(?=@)"  # user:password@host
)


def masked(text: str) -> str:
    """The text with what looks like a secret taken out."""
    return LOOKS.sub(HIDDEN, text)
