"""The SQL store: the only part of batchmill that knows SQLAlchemy."""
