"""How all commands print: tables, columns, confirmation, exit."""
