"""Where things are in an environment."""

from pathlib import PurePosixPath


class EnvironmentPaths:
    logs_dir = PurePosixPath("/logs")
    agent_dir = logs_dir / "agent"
    verifier_dir = logs_dir / "verifier"
    artifacts_dir = logs_dir / "artifacts"
    tests_dir = PurePosixPath("/tests")
    solution_dir = PurePosixPath("/solution")
