"""The one error that a verb ends with when it cannot run: what is wrong, and the mend."""

from __future__ import annotations

__all__ = ["CannotRun", "Interrupted"]


class CannotRun(Exception):  # noqa: N818  # reads as the sentence it is: "cannot run: port 8080 is taken"
    """Raised when a verb could not do its work; the console prints it as one line and exits 2."""

    def __init__(self, message: str, mend: str = "") -> None:
        """Keep the sentence and the mend apart.

        Args:
            message: What is wrong, in one line.
            mend: What the reader does about it, in one line; empty when there is nothing to do.
        """
        super().__init__(message)
        self.message = " ".join(message.split())
        self.mend = " ".join(mend.split())

    def __str__(self) -> str:
        return f"{self.message}; {self.mend}" if self.mend else self.message


class Interrupted(BaseException):  # like KeyboardInterrupt, it must pass every `except Exception`
    """Raised in the main thread when SIGTERM asks a long verb to end; whatever it started is stopped on the way out."""
