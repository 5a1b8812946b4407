"""Elements and attributes of HTML: which end a sentence, which are inside one, which are no text.

Owns these lists and nothing else; how a page is read with them is `model.documents.markup.html`. An
element that is in no list, such as a custom one, is inline, as it is in a browser.
"""

from collections.abc import Mapping
from types import MappingProxyType

BLOCK_ELEMENTS = frozenset(
    """
    address applet area article aside audio base basefont bgsound blockquote body br button canvas
    caption center col colgroup datalist dd details dialog dir div dl dt embed fieldset figcaption
    figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe keygen
    legend li link listing main marquee menu meta nav noembed noframes noscript object ol optgroup
    option output p param picture plaintext pre script search section select slot source style
    summary table tbody td template textarea tfoot th thead title tr track ul video xmp
    """.split()  # noqa: SIM905  # one list a line
)
"""What no sentence goes across."""

VOID_ELEMENTS = frozenset(
    """
    area base basefont bgsound br col embed frame hr img input keygen link meta param source track
    wbr
    """.split()  # noqa: SIM905
)
"""What has no end tag."""

UNSEEN_ELEMENTS = frozenset({"wbr"})
"""Of these inside a sentence what may stand in a word, of which nothing is seen."""

_ROW_GROUPS = "tbody tfoot thead"
_NOT_IN_PARAGRAPHS = """
    address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext
    pre search section summary table ul xmp
    """
ENDED_BY: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        name: frozenset(starts.split())
        for names, starts in (
            ("p", _NOT_IN_PARAGRAPHS),
            ("li", "li"),
            ("dd dt", "dd dt"),
            ("td th", f"td th tr {_ROW_GROUPS}"),
            ("tr", f"tr {_ROW_GROUPS}"),
            (_ROW_GROUPS, _ROW_GROUPS),
            ("caption colgroup", f"colgroup tr {_ROW_GROUPS}"),
            ("option", "option optgroup"),
            ("optgroup", "optgroup"),
            ("head", "body"),
        )
        for name in names.split()
    }
)
"""Whose end tag may be left out, and what begins behind it then."""

SCOPES = frozenset("applet button dir dl marquee menu object ol select table template ul".split())  # noqa: SIM905
"""Inside of which nothing that begins ends an element around them."""

UNTOUCHED_ELEMENTS = frozenset(
    """
    code iframe kbd math noembed noframes plaintext samp script style svg textarea var xmp
    """.split()  # noqa: SIM905
)
"""What is copied with all that is in it."""

READ_TAGS = frozenset({"iframe", "textarea"})
"""Of these, what has attributes that are read by people."""

RAW_ELEMENTS = frozenset(
    "script style textarea xmp iframe noembed noframes plaintext".split()  # noqa: SIM905
)
"""What a browser reads without looking for tags."""

KEPT_SPACE_ELEMENTS = frozenset({"pre", "listing"})
"""Where white space has a meaning."""

TEXT_ATTRIBUTES = frozenset({"alt", "title", "placeholder", "aria-label", "aria-description"})
"""What of any element is read by people."""

OWN_TEXT_ATTRIBUTES = frozenset(
    {("optgroup", "label"), ("option", "label"), ("track", "label"), ("table", "summary")}
)
"""What only of some elements is."""

BUTTON_TYPES = frozenset({"button", "reset", "submit"})
"""Types of `input` whose value is read by people."""

META_NAMES = frozenset(
    """
    description keywords og:title og:description og:site_name og:image:alt twitter:title
    twitter:description twitter:image:alt
    """.split()  # noqa: SIM905
)
"""Names of `meta` whose content is."""
