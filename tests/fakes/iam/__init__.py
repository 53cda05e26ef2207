"""AWS's permissions in front of ministack, which checks none.

Each request that a role signs is judged by the policies of that role, as the template or a test has made
them, and by the session's policy where the keys were lent with one. A refusal has the form of its service.
Functions sign as their role. The account's own keys (`test`) may do everything, as in the account of whoever
deploys. Signatures are not checked here.

- `policies`: what a role may do, as values.
- `requests`: what a request does, by AWS's names of actions and resources.
- `gate`: the application in front of ministack, with what was used and refused so far.
"""
