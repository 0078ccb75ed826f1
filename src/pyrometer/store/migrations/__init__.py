"""How a store made by an earlier version becomes one that this version reads; run by alembic."""
