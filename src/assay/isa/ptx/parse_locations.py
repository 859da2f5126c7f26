"""Parses .loc directives and tracks the location of the next instruction."""

from assay.isa.ptx.cursor import Stream
from assay.isa.ptx.instruction import Location

DEEPEST = 256
"""The most callers that are kept for inlined code; compilers stay far below."""


class Locations:
    def __init__(self) -> None:
        self.current: Location | None = None
        self._known: dict[tuple[int, int, int], Location] = {}

    def read(self, c: Stream) -> None:
        """Parse `.loc 1 30 7, function_name $name1, inlined_at 1 20 5`."""
        c.take()
        place = self._place(c)
        function, inlined = "", tuple[Location, ...]()
        while c.accept(","):
            if c.accept("function_name"):
                function = c.take()
                if c.accept("+"):
                    function += f"+{c.number('an offset')}"
            elif c.accept("inlined_at"):
                at = self._place(c)
                known = self._known.get(at, Location(*at))
                inlined = (Location(*at, known.function), *known.inlined)[:DEEPEST]
            else:
                raise c.fail("function_name or inlined_at")
        self._known[place] = self.current = Location(*place, function, inlined)

    def _place(self, c: Stream) -> tuple[int, int, int]:
        return c.number("a file's number"), c.number("a line of the source"), c.number("a column of the source")
