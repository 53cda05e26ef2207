"""The control plane's way to AWS: its code as a zip, a stack made of its template by change sets, and what the stack says of itself."""

from prime_train.adapters.aws_deploy.account import Account, texts
from prime_train.adapters.aws_deploy.package import Package, Target, digest_of, interpreter, package
from prime_train.adapters.aws_deploy.plan import Changed, Plan
from prime_train.adapters.aws_deploy.stack import Stack

__all__ = ["Account", "Changed", "Package", "Plan", "Stack", "Target", "digest_of", "interpreter", "package", "texts"]
