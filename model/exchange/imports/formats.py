"""The formats that can be imported, in the order in which a source is asked for them.

Owns the list. An importer recognises its own format by its content; the order matters only where
two could.
"""

from model.exchange.imports.imported import Importer

IMPORTERS: tuple[Importer, ...] = ()
