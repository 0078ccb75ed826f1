"""Where runs are kept: SQLite by default, any SQLAlchemy URL for a team."""
