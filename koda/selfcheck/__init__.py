"""The proof on the spot: six checks against a real gateway and a real worker, over HTTP.

They run on a database made for them and dropped afterwards, with the services and the settings
in force, and with the channel layer as bad as a channel layer may be (`layer`). The checks know
the promises, not the code that keeps them: what they compare with is written down in them.
"""
