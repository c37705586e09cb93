"""Counts checks, and prints one line for each that fails and one at the end."""
import sys

_passed, _failed = 0, []


def check(name):
    """Runs the function at once."""

    def run(f):
        global _passed
        if len(sys.argv) > 1 and sys.argv[1] not in name:
            return
        try:
            f()
            _passed += 1
        except Exception as e:  # pylint: disable=broad-except
            _failed.append(name)
            print(f"FAILED {name}: {type(e).__name__}: {str(e)[:400]}")

    return run


def equal(got, want, what="value"):
    if got != want:
        raise AssertionError(f"{what} is {got!r}, not {want!r}")


def fails(kind, f):
    """Returns the error of a call that must fail."""
    try:
        result = f()
    except kind as e:
        return e
    raise AssertionError(f"succeeded with {result!r}")


def finish(client):
    print(f"{client}: {_passed} checks passed, {len(_failed)} failed")
    sys.exit(1 if _failed else 0)
