"""The formats that can be imported, in the order in which a source is asked for them.

Owns the list. An importer recognises its own format by its content; the order matters only where
two could.
"""

from model.exchange.imports.argos import ArgosImporter
from model.exchange.imports.ctranslate2 import CTranslate2Importer
from model.exchange.imports.firefox import FIREFOX
from model.exchange.imports.huggingface_fsmt import FsmtImporter
from model.exchange.imports.huggingface_m2m100 import HuggingFaceM2M100
from model.exchange.imports.huggingface_marian import HuggingFaceMarian
from model.exchange.imports.huggingface_mbart import MBartImporter
from model.exchange.imports.huggingface_t5 import T5Importer
from model.exchange.imports.imported import Importer
from model.exchange.imports.marian import MARIAN
from model.exchange.imports.opennmt import OpenNMTImporter
from model.exchange.imports.opus_mt import OPUS_MT

IMPORTERS: tuple[Importer, ...] = (
    HuggingFaceMarian(),
    HuggingFaceM2M100(),
    MBartImporter(),
    T5Importer(),
    FsmtImporter(),
    FIREFOX,
    OPUS_MT,
    MARIAN,
    ArgosImporter(),
    CTranslate2Importer(),
    OpenNMTImporter(),
)
