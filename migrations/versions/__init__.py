"""The revisions, oldest first by name; each is frozen once it has been released."""
