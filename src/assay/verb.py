"""A room named like its verb: `assay.check` is the folder, and calling it runs the verb."""

import sys
import types
from collections.abc import Callable
from typing import Any


def callable_room(name: str, verb: Callable[..., Any]) -> None:
    """Make the module `name` callable. Importing a submodule binds it on the package, over any function."""

    class Room(types.ModuleType):
        __doc__ = verb.__doc__

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return verb(*args, **kwargs)

    sys.modules[name].__class__ = Room
