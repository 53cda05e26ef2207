"""Tasks of other tools (SkyPilot, Kubernetes, dstack) that run a config with prime-train's agent and bucket, but without its control
plane.

What a task brings to its machine: the agent's wheel with its pins, the script that installs it, the code, and the config as the machine
needs it. There prime-train launches a run on the machine itself, from the newest checkpoint that an earlier machine of the same task left
in the bucket. The other tool rents the machines and replaces those that are lost; prime-train saves, uploads, resumes and judges.
"""
