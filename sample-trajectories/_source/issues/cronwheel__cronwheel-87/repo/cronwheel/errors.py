class CronError(ValueError):
    """The expression cannot be read."""


class NeverFires(CronError):
    """The expression is fine but no date fits it, such as 30 February."""
