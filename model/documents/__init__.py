"""Documents: texts to translate, and everything else byte for byte."""
