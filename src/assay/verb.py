"""Makes the package of a verb callable: `assay.check` is a package, and calling it runs the verb."""

import sys
import types
from collections.abc import Callable
from typing import Any


def callable_room(name: str, verb: Callable[..., Any]) -> None:
    """Make the module `name` callable. A function would not do: importing the module binds it over the function."""

    class Room(types.ModuleType):
        __doc__ = verb.__doc__

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return verb(*args, **kwargs)

    sys.modules[name].__class__ = Room
