"""All that the environment remembers, in one hand: the books below ``.agents/hollow``."""

from __future__ import annotations

from hollow.memory.broken import BrokenTools
from hollow.memory.chronicles import Chronicles
from hollow.memory.files import Files
from hollow.memory.goals import GoalBook
from hollow.memory.host import HostWords
from hollow.memory.keys import Keys
from hollow.memory.lessons import LessonBook
from hollow.memory.mail import Mail
from hollow.memory.profiles import Profiles
from hollow.memory.requests import RequestBook
from hollow.memory.results import Results
from hollow.memory.shelf import Shelf
from hollow.memory.sufferings import Sufferings
from hollow.memory.vectors import Vectors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Memory:
    """The books of the state folder *root*; *warn* is told of damage, as a kind and facts.

    Each book takes the one lock by itself for as long as it changes something, and none calls another (W21).
    """

    def __init__(self, root: Path, warn: Callable[..., None] | None = None) -> None:
        self.root = root
        self.files = files = Files(root, warn)
        self.sufferings = Sufferings(files)
        self.chronicles = Chronicles(files)
        self.goals = GoalBook(files)
        self.lessons = LessonBook(files)
        self.profiles = Profiles(files)
        self.requests = RequestBook(files)
        self.mail = Mail(files)
        self.host = HostWords(files)
        self.shelf = Shelf(files)
        self.broken = BrokenTools(files)
        self.vectors = Vectors(files)
        self.keys = Keys(files)
        self.results = Results(files)
