"""Where the records of runs are kept: SQLite, DynamoDB, a control plane elsewhere, memory."""
