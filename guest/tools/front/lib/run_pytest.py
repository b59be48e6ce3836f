"""Starts the tools volume's pytest so that only /tests configures it: run_pytest.py WHERE FOLDERS ARGUMENTS..."""

import os
import sys

TESTS = "/tests"
NOTES = "/logs/verifier/.evaluator-front"
CONFIG_NAMES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
PLUGINS = (("ctrf", "ctrf.main"),)


def is_below_tests(path):
    path = os.path.abspath(path)
    return path == TESTS or path.startswith(TESTS + "/")


def options(arguments):
    """Root, configuration and conftest files come from /tests, or from nowhere; never from the agent's folders."""
    paths = [one.split("::")[0] for one in arguments if not one.startswith("-")]
    paths = [path for path in paths if os.path.exists(path)] or [os.getcwd()]
    config = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytest.ini")
    if any(is_below_tests(path) for path in paths):
        for name in reversed(CONFIG_NAMES):
            if os.path.isfile(os.path.join(TESTS, name)):
                config = os.path.join(TESTS, name)
        place = ["--rootdir=" + TESTS, "--confcutdir=" + TESTS]
    else:
        place = ["--rootdir=" + os.getcwd(), "--noconftest"]
    return ["-c", config] + place + ["-p", "no:cacheprovider"]


def main():
    where, folders, arguments = sys.argv[1], sys.argv[2].split(":"), sys.argv[3:]
    if sys.version_info < (3, 9):
        with open(NOTES, "a") as notes:
            notes.write("front_python_too_old %d.%d\n" % sys.version_info[:2])
        sys.exit(97)
    # After the standard library, as in a virtual environment.
    sys.path.extend(dict.fromkeys(folders))
    if where == "environment":
        environment = os.environ["VERIFIER_FRONT_ENVIRONMENT"]
        sys.executable = environment + "/bin/python3"
        sys.path.append(environment + "/lib/python3.13/site-packages")
    else:
        import site

        site.main()
    plugins = []
    for package, module in PLUGINS:
        if any(os.path.isdir(os.path.join(folder, package)) for folder in folders):
            plugins += ["-p", module]
    if where == "image-module":
        # `python -m pytest` puts the working directory first; last, it cannot shadow pytest or the library.
        sys.path.append(os.getcwd())
    os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ.pop("PYTEST_PLUGINS", None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.argv = ["pytest"] + options(arguments) + plugins + arguments
    from pytest import console_main

    sys.exit(console_main())


if __name__ == "__main__":
    main()
