"""`manage.py chat`: a run in the terminal, here or on a server."""
