"""What has to be said beside the figures of some results: pure, JSON in and sentences out.

Owns which of the page's rules a committed result does not keep, and how that is worded. Where the
sentences are put is `benchmarks.peers.report`.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.peers.marks import has_small_groups, point_name
from benchmarks.peers.offline import MIN_ROUNDS
from benchmarks.peers.results import MAX_BUSY_PERCENT, Result
from benchmarks.peers.rivals import ACTIVE, CTRANSLATE2, DRAGOMAN_INT8, WAIT_POLICY
from benchmarks.peers.served import BARE
from benchmarks.peers.work import num_nearest_lengths


def family_notes(results: Mapping[str, Result]) -> list[str]:
    """Of the families: files that are left out, rules that were not kept, other processors."""
    families = results.get("families", {}).get("families", [])
    found = [_small_files(families), _broken_rules(families)]
    if "offline" in results:
        machine = results["offline"]["machine"]
        runs = {one["family"]: one.get("run", {}).get("machine", machine) for one in families}
        found.append(other_processors(runs, machine))
    return [one for one in found if one]


def _small_files(families: Sequence[Result]) -> str:
    sizes: defaultdict[int, list[str]] = defaultdict(list)
    for one in families:
        for size in {p["num_sentences"] for p in one["points"] if has_small_groups(p)}:
            sizes[size].append(one["family"])
    if not sizes:
        return ""
    parts = [
        f"the file of {size} sentences of {_joined(names)} has answers of"
        f" {num_nearest_lengths(size)} lengths"
        for size, names in sorted(sizes.items())
    ]
    return (
        f"Not shown: {_joined(parts)}. CTranslate2 has one length a call, so it was given calls of"
        " a few sentences there, where our batches had all of them. Files of so few sentences have"
        " few lengths now, and wait to be measured again."
    )


def _broken_rules(families: Sequence[Result]) -> str:
    parts = []
    for one in families:
        faults = []
        fewest = min(
            len(point["rivals"][name]["rounds"])
            for point in one["points"]
            for name in (DRAGOMAN_INT8, CTRANSLATE2)
        )
        if fewest < MIN_ROUNDS:
            faults.append(f"{fewest} round{'' if fewest == 1 else 's'} only")
        busy = one.get("run", {}).get("busy_percent_before", 0.0)
        if busy > MAX_BUSY_PERCENT:
            faults.append(f"others had used {busy:g} % of the processors just before")
        if faults:
            parts.append(f"{one['family']} ({', '.join(faults)})")
    if not parts:
        return ""
    rule = f"{MIN_ROUNDS} rounds, and others with {MAX_BUSY_PERCENT:g} % of the processors at most"
    return f"Below what the comparison asks for, {rule}: {'; '.join(parts)}."


def other_processors(runs: Mapping[str, Result], machine: Result) -> str:
    """Which of these runs were on another processor than the rest of the page.

    Args:
        runs: Their machines, by what was measured.
        machine: That of the rest.
    """
    others: defaultdict[str, list[str]] = defaultdict(list)
    for name, own in runs.items():
        if _processor(own) != _processor(machine):
            others[_processor(own)].append(name)
    if not others:
        return ""
    parts = [f"{_joined(names)} on {processor}" for processor, names in others.items()]
    return (
        f"Measured on another processor than the rest ({_processor(machine)}): {'; '.join(parts)}."
    )


def _processor(machine: Result) -> str:
    return f"{machine['processor']} with {', '.join(machine['vector_units'])}"


def thread_notes(result: Result) -> list[str]:
    """Points at which CTranslate2 was fastest with fewer threads than ours, or with active ones."""
    num_threads = result.get("num_threads", 1)
    fewer, active = [], []
    for point in result["points"]:
        settings = point["rivals"].get(CTRANSLATE2, {}).get("settings", {})
        if settings.get("inter_threads", 1) * settings.get("intra_threads", 1) < num_threads:
            fewer.append(point_name(point))
        if settings.get(WAIT_POLICY) == ACTIVE:
            active.append(point_name(point))
    found = []
    if fewer:
        found.append(
            f"CTranslate2 was fastest with one thread, where ours has {num_threads}:"
            f" {'; '.join(fewer)}."
        )
    if active:
        found.append(f"Its threads waited actively (OMP_WAIT_POLICY): {'; '.join(active)}.")
    return found


def served_notes(result: Result) -> list[str]:
    """What a run of the servers is not, of what today's would be."""
    if result.get("ctranslate2_server") == BARE:
        return []
    words = (
        "In this run the server around CTranslate2 still had FastAPI's routing, handed every text"
        " to a thread and back, and left garbage collection as it is by default. Ours did not, so"
        " the smaller the network, the more of the difference is that of the servers."
    )
    return [words]


def tuning_note(results: Mapping[str, Result]) -> str:
    """Results whose settings were chosen as they no longer are.

    Args:
        results: With points, by what they are called.
    """
    earlier = [name for name, result in results.items() if _was_tried_once(result)]
    if not earlier:
        return ""
    return (
        f"The settings of {_joined(earlier)} were still chosen by one run of each candidate, and in"
        " files and texts CTranslate2's on 192 sentences of one length, or as many as there were:"
        " that left one of two workers idle at times. No threads of its were tried that wait"
        " actively."
    )


def _was_tried_once(result: Result) -> bool:
    return any("runs" not in tried for tried in _tried(result))


def _tried(result: Result) -> Iterator[Result]:
    for point in result["points"]:
        for rival in point["rivals"].values():
            yield from rival.get("tuning", [])


def _joined(names: Sequence[str]) -> str:
    """Names in a sentence."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
