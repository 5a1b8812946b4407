"""The formats that can be imported, in the order in which a source is asked for them.

Owns the list. An importer recognises its own format by its content; the order matters only where
two could.
"""

from model.exchange.imports.ctranslate2.argos import ArgosImporter
from model.exchange.imports.ctranslate2.importer import CTranslate2Importer
from model.exchange.imports.huggingface.fsmt import FsmtImporter
from model.exchange.imports.huggingface.m2m100 import HuggingFaceM2M100
from model.exchange.imports.huggingface.marian import HuggingFaceMarian
from model.exchange.imports.huggingface.mbart import MBartImporter
from model.exchange.imports.huggingface.t5 import T5Importer
from model.exchange.imports.huggingface.unknown import UnknownFamily
from model.exchange.imports.imported import Importer
from model.exchange.imports.marian.firefox import FIREFOX
from model.exchange.imports.marian.importer import MARIAN
from model.exchange.imports.marian.opus_mt import OPUS_MT
from model.exchange.imports.opennmt.importer import OpenNMTImporter

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
    UnknownFamily(known=("marian", "m2m_100", "mbart", "t5", "mt5", "fsmt")),
)
