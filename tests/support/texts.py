"""Texts that break translation servers."""

from hypothesis import strategies as st

WORD_5000_TIMES = "no " * 5_000
SPECIAL_TEXTS = (
    "",
    " ",
    "\n",
    "\r\n\t\u3000 \n",
    "a" * 100_000,
    WORD_5000_TIMES,
    "word " * 5_000,
    "7" * 300,
    "3.14 + 2.72 = 5.86",
    "\x00\x01\x02\x1b[31m\x7f\x80\x9f",
    "\ufeff\u200b\u200d\u2060\ufffe\uffff",
    "👩‍👩‍👧‍👦🏳️‍🌈👍🏽 family",
    "\ud800",
    "a\udfffb \ud83d",
    "שלום עולם",
    "\u202eevil\u202c مرحبا بالعالم",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞",
    "ﷺ" * 50,
    "<b>bold</b> &amp; {name} %s </s> <unk> ▁",
    "." * 1_000,
    "A. " * 200,
    "\u2028line\u2029paragraph\x85next",
)

awkward_texts = st.one_of(
    st.sampled_from(SPECIAL_TEXTS),
    st.text(st.characters(codec=None), max_size=200),
    st.text(st.characters(categories=("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")), max_size=60),
    st.text("0123456789.,+-% \n", max_size=60),
    st.lists(st.sampled_from(["The cat", "sees.", "\n", "  ", "7.30", "猫", "e\u0301"])).map(
        " ".join
    ),
)
