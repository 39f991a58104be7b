"""What can go wrong, and the exit code each kind of it has."""


class LabError(Exception):
    """The lab itself failed: nothing can be concluded about what was tested on it."""

    exit_code = 70
    label = "LAB FAILURE"


class Unavailable(LabError):
    """This machine cannot run a lab. Tests skip; 77 is what automake and meson call a skipped test."""

    exit_code = 77
    label = "lab unavailable"


class Usage(LabError):
    """The command asks for something that does not exist."""

    exit_code = 2
    label = "lab"
