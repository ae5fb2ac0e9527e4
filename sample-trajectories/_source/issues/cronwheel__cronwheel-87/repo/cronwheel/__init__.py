"""When does a cron expression fire?"""

from .errors import CronError, NeverFires
from .expression import CronExpression
from .schedule import between, next_after, upcoming

__all__ = ["CronError", "CronExpression", "NeverFires", "between", "next_after", "upcoming"]
__version__ = "1.3.0"
