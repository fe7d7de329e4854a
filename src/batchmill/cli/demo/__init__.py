"""``batchmill demo``: three callers, one worker, a small web server, a database, all real."""
