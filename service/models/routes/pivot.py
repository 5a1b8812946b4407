"""Choice of a route: straight where a checkpoint translates the languages, else by a pivot.

Owns when there are two hops, and which languages can be reached so, and from which. Pure; who
translates a route of two hops is `service.models.translating.two_hops`.
"""

from service.models.routes.routing import Route, RoutingTable


def find_route(table: RoutingTable, source: str, target: str) -> Route | None:
    """The route between two languages: one hop, or two by way of the pivot; None if there is none.

    Args:
        table: What is served.
        source: A language.
        target: Another one, or the same if a checkpoint translates it to itself.
    """
    direct = table.all.hop(source, target)
    if direct is not None:
        return Route(hops=(direct,))
    pivot = table.pivot
    if pivot is None or source == target:
        return None
    first, second = table.all.hop(source, pivot), table.all.hop(pivot, target)
    if first is None or second is None:
        return None
    return Route(hops=(first, second))


def sources(table: RoutingTable, target: str) -> list[str]:
    """Every other language that there is a route from: the pivot, those of one hop, of two."""
    pivot = table.pivot
    found = dict.fromkeys(table.all.sources(target))
    if pivot is not None and pivot in found:
        found = {pivot: None} | found | dict.fromkeys(table.all.sources(pivot))
    return [source for source in found if source != target]


def reachable(table: RoutingTable, source: str) -> list[str]:
    """Every language that there is a route to: those of one hop, then those of two."""
    found = dict.fromkeys(table.all.targets(source))
    if table.pivot is not None and table.pivot in found:
        found |= dict.fromkeys(
            target for target in table.all.targets(table.pivot) if target != source
        )
    return list(found)
