"""batchmill's Alembic environment, installed as ``batchmill.migrations``."""
