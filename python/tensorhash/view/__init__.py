"""`tensorhash view scan.ply`: a local page that shows points and voxels.

The server listens on the loopback address only, every request needs a random token, and the page
loads nothing from outside. Voxels are made anew by the server whenever the slider moves.
"""

from tensorhash.view._server import serve

__all__ = ["serve"]
