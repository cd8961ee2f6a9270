"""Lets a Python process show where its main thread is, in a file without a name.

Python imports this module at its start because its directory is first in PYTHONPATH. On signal 50 the stack is written
by faulthandler, also in C code and while the GIL is held; on signal 51 by Python itself, which happens only
where its frames are complete. Then the user's own sitecustomize is imported, as if this one were not there. Any Python
may run this, so it must not fail in any.
"""

# mypy: ignore-errors
import os
import sys


def register():
    import _signal
    import faulthandler
    import fcntl

    try:
        file = os.memfd_create("paddlejob-stacks")
    except (AttributeError, OSError):
        path = "/dev/shm/paddlejob-stacks-%d" % os.getpid()
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.unlink(path)
    fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)

    def show(_, frame):
        try:
            lines = ["Stack (most recent call first):"]
            while frame and len(lines) < 100:
                code = frame.f_code
                lines.append('  File "%s", line %d in %s' % (code.co_filename, frame.f_lineno or 0, code.co_name))
                frame = frame.f_back
            # A program may have closed the file, and opened another with its number.
            if "paddlejob-stacks" in os.readlink("/proc/self/fd/%d" % file):
                os.write(file, ("\n".join(lines) + "\n").encode("utf-8", "replace"))
        except Exception:
            pass

    # Real-time signals that nothing in Python or Paddle uses. System calls of the program go on.
    _signal.signal(51, show)
    _signal.siginterrupt(51, False)
    # Not of all threads: one that runs meanwhile makes faulthandler crash.
    faulthandler.register(50, file=file, all_threads=False, chain=False)


try:
    register()
except Exception:
    pass
own = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != own]
del sys.modules["sitecustomize"], own
__import__("sitecustomize")
