"""A look-alike of Microsoft Graph and Entra, as far as reading files from drives needs them.

Start it from Python with :func:`graphsim.serving.serve`, or as ``python -m graphsim DIR``.
"""
