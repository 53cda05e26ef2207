"""Deployment to AWS: the control plane's code as a zip, and a stack that is created from its template and changed by change sets."""

from prime_train.adapters.aws_deploy.account import Account, texts
from prime_train.adapters.aws_deploy.package import Package, Target, digest_of, interpreter, package
from prime_train.adapters.aws_deploy.plan import Changed, Plan
from prime_train.adapters.aws_deploy.stack import Stack

__all__ = ["Account", "Changed", "Package", "Plan", "Stack", "Target", "digest_of", "interpreter", "package", "texts"]
