"""What a config says (`RunSpec`): its one reader, which knows the place of each value, findings, and the type
of a rule.
"""
