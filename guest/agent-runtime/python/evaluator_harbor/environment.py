"""Harbor's environment, as an agent sees it: the task's container, behind the broker."""

import contextlib
import logging
import os
import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass

from evaluator_harbor.client import BrokerClient


@dataclass
class ExecResult:
    stdout: str | None = None
    stderr: str | None = None
    return_code: int = 0


class BaseEnvironment(ABC):
    """What an agent may ask of the environment it works in."""

    default_user: str | int | None = None
    environment_name: str = "task"
    session_id: str = "task"
    logger: logging.Logger = logging.getLogger("harbor.environment")

    @abstractmethod
    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        """Runs a command in the environment's shell."""

    @abstractmethod
    async def upload_file(self, source_path, target_path):
        """Copies a file of the agent's into the environment."""

    @abstractmethod
    async def upload_dir(self, source_dir, target_dir):
        """Copies what is in a directory of the agent's into one of the environment."""

    @abstractmethod
    async def download_file(self, source_path, target_path):
        """Copies a file of the environment to the agent."""

    @abstractmethod
    async def download_dir(self, source_dir, target_dir):
        """Copies what is in a directory of the environment into one of the agent's."""

    async def is_dir(self, path, user=None):
        return (await self.exec(f"test -d {shlex.quote(path)}", user=user)).return_code == 0

    async def is_file(self, path, user=None):
        return (await self.exec(f"test -f {shlex.quote(path)}", user=user)).return_code == 0

    @contextlib.contextmanager
    def with_default_user(self, user):
        previous, self.default_user = self.default_user, user
        try:
            yield
        finally:
            self.default_user = previous


class BrokerEnvironment(BaseEnvironment):
    """The one that there is."""

    def __init__(self, client: BrokerClient):
        self._client = client

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        user = self.default_user if user is None else user
        answer = await self._client.call(
            "exec",
            command=command,
            cwd=None if cwd is None else str(cwd),
            env=None if env is None else {name: str(value) for name, value in env.items()},
            timeout_sec=timeout_sec,
            user=None if user is None else str(user),
        )
        return ExecResult(answer["stdout"], answer["stderr"], answer["return_code"])

    async def upload_file(self, source_path, target_path):
        await self._transfer("upload", _here(source_path), str(target_path), "file")

    async def upload_dir(self, source_dir, target_dir):
        await self._transfer("upload", _here(source_dir), str(target_dir), "directory")

    async def download_file(self, source_path, target_path):
        await self._transfer("download", str(source_path), _here(target_path), "file")

    async def download_dir(self, source_dir, target_dir):
        await self._transfer("download", str(source_dir), _here(target_dir), "directory")

    async def _transfer(self, name, source, target, what):
        await self._client.call(name, source=source, target=target, what=what)


def _here(path):
    """An absolute path in the agent's own sandbox; a slash at the end keeps its meaning."""
    text = os.fspath(path)
    return os.path.abspath(text) + ("/" if text.endswith("/") else "")
