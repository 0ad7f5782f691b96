"""Value classes with the words and the meaning of `dataclasses`, at a twentieth of what those cost at every start."""

from __future__ import annotations

TYPE_CHECKING = False  # As `typing` has it; importing that for one constant would cost what this module saves.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any


class _Missing:
    """The type of the one value that says: no default."""


_MISSING = _Missing()


class _Field:
    """One field of a record: its name, the text of its annotation, and where its value comes from if none is given."""

    __slots__ = ("default", "default_factory", "name", "repr", "type")

    def __init__(self, default: Any, default_factory: Any, repr: bool) -> None:  # noqa: A002 - the name that dataclasses has
        self.name = ""
        self.type = ""
        self.default = default
        self.default_factory = default_factory
        self.repr = repr

    @property
    def required(self) -> bool:
        """Whether a value has to be given."""
        return self.default is _MISSING and self.default_factory is _MISSING


class FrozenInstanceError(AttributeError):
    """Something tried to change a frozen record."""


def _field(*, default: Any = _MISSING, default_factory: Any = _MISSING, repr: bool = True) -> Any:  # noqa: A002 - as above
    """A field with a *default*, or one that *default_factory* makes anew; *repr* False leaves it out of repr()."""
    if default is not _MISSING and default_factory is not _MISSING:
        raise ValueError("cannot specify both default and default_factory")
    return _Field(default, default_factory, repr)


def _dataclass(*, frozen: bool = False, slots: bool = False, kw_only: bool = False) -> Callable[[type], type]:
    """Make the class below a record, exactly as `dataclasses.dataclass` would.

    The code of its methods is shared by all records instead of being written and compiled for each: that costs a
    microsecond more for every record that is made, and half a millisecond less for every class.

    Args:
        frozen: assigning to a field raises FrozenInstanceError, and the record can be hashed.
        slots: has to be True: nothing here keeps a record's values in a dictionary.
        kw_only: fields are given by name only.

    Raises:
        TypeError: *slots* is not asked for, or a field without a default follows one that has one.
        ValueError: a default that could be changed (a list, say), which all records would share.
    """
    if not slots:
        raise TypeError("a record has slots: write slots=True")
    return lambda cls: _made(cls, frozen=frozen, kw_only=kw_only)


def _made(cls: type, *, frozen: bool, kw_only: bool) -> type:
    names = dict(cls.__dict__)
    inherited = {name: each for base in reversed(cls.__mro__) for name, each in _spec(base).items()}
    own = dict(_declared(names))
    spec = inherited | own
    if not kw_only:
        _check_order(cls.__name__, spec)
    for name in own:
        names.pop(name, None)  # a default in the way of the slot of that name
    names.pop("__dict__", None)
    names.pop("__weakref__", None)
    names["__slots__"] = tuple(name for name in own if name not in inherited)
    names["__record__"] = spec
    names["__match_args__"] = () if kw_only else tuple(spec)
    _add_methods(names, _initializer(spec, 0 if kw_only else len(spec)), frozen=frozen)
    return type(cls)(cls.__name__, cls.__bases__, names)


def _add_methods(names: dict[str, Any], init: Callable[..., None], *, frozen: bool) -> None:
    """Add to the *names* of a class what it does not define itself."""
    names.setdefault("__init__", init)
    names.setdefault("__repr__", _repr)
    names |= {"__getstate__": _getstate, "__setstate__": _setstate}
    if "__eq__" not in names:
        names |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
    if frozen:
        names |= {"__setattr__": _refuse, "__delattr__": _refuse}


def _declared(names: Mapping[str, Any]) -> Iterator[tuple[str, _Field]]:
    """The fields that a class of these *names* declares itself, in their order."""
    for name, written in names.get("__annotations__", {}).items():
        if "ClassVar" in written:
            continue
        given = names.get(name, _MISSING)
        if given.__class__.__hash__ is None:
            raise ValueError(f"mutable default {type(given)} for field {name} is not allowed: use default_factory")
        each = given if isinstance(given, _Field) else _Field(given, _MISSING, True)
        each.name, each.type = name, written
        yield name, each


def _check_order(what: str, spec: Mapping[str, _Field]) -> None:
    optional = ""
    for each in spec.values():
        if not each.required:
            optional = each.name
        elif optional:
            raise TypeError(f"{what}: non-default argument {each.name!r} follows default argument {optional!r}")


def _initializer(spec: Mapping[str, _Field], places: int) -> Callable[..., None]:
    """The ``__init__`` of a record of *spec*, of whose fields the first *places* can be given without their names."""
    names = tuple(spec)
    put = object.__setattr__
    plain = {name: each.default for name, each in spec.items() if each.default is not _MISSING}

    def __init__(self: Any, /, *given: Any, **named: Any) -> None:  # noqa: N807 - it becomes the method of that name
        if len(given) > places:
            raise TypeError(f"__init__() takes {places + 1} positional arguments but {len(given) + 1} were given")
        for name, value in zip(names, given, strict=False):
            put(self, name, value)
        for name in names[len(given) :]:
            if name in named:
                put(self, name, named.pop(name))
            else:
                put(self, name, plain[name] if name in plain else _default(spec[name]))
        if named:
            raise TypeError(f"__init__() got an unexpected keyword argument or one twice: {', '.join(named)}")

    return __init__


def _default(field: _Field) -> Any:
    if field.default_factory is not _MISSING:
        return field.default_factory()
    raise TypeError(f"__init__() missing 1 required argument: {field.name!r}")


def _spec(record: Any) -> dict[str, _Field]:
    found: dict[str, _Field] = getattr(record, "__record__", {})
    return found


def _values(record: Any) -> list[Any]:
    return [getattr(record, name) for name in record.__record__]


def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in _spec(self).values() if each.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(tuple(_values(self)))


def _getstate(self: Any) -> list[Any]:
    return _values(self)


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__record__, state, strict=True):
        object.__setattr__(self, name, value)


def _refuse(_: object, name: str, *_value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _fields(record: Any) -> tuple[_Field, ...]:
    """The fields of a *record*, or of a class of records, in their order."""
    return tuple(record.__record__.values())


def _replace(record: Any, /, **changes: Any) -> Any:
    """A record like *record*, but for *changes*."""
    # Past __init__, which no record writes itself: what an agent says is put together by this, line by line.
    made, put = object.__new__(record.__class__), object.__setattr__
    for name in record.__record__:
        put(made, name, changes.pop(name) if name in changes else getattr(record, name))
    if changes:
        raise TypeError(f"__init__() got an unexpected keyword argument: {', '.join(changes)}")
    return made


def _asdict(record: Any) -> dict[str, Any]:
    """The fields of a *record* as a dictionary, and so on for the records in it; what is no container is not copied."""
    return {name: _plain(getattr(record, name)) for name in record.__record__}


def _plain(value: Any) -> Any:
    if _spec(value):
        return _asdict(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_plain, value))
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return type(value)((_plain(key), _plain(each)) for key, each in value.items())
    return value


if TYPE_CHECKING:
    # A type checker sees the originals: it knows what they mean.
    from dataclasses import asdict, dataclass, field, fields, replace
else:
    asdict, dataclass, field, fields, replace = _asdict, _dataclass, _field, _fields, _replace

__all__ = ["FrozenInstanceError", "asdict", "dataclass", "field", "fields", "replace"]
