"""Where runs are kept: SQLite by default, PostgreSQL for a team."""
