"""The base class of agents, with the constructor that Harbor calls."""

import logging
from abc import ABC, abstractmethod


class BaseAgent(ABC):
    SUPPORTS_ATIF = False

    def __init__(
        self,
        logs_dir,
        model_name=None,
        logger=None,
        mcp_servers=None,
        skills_dir=None,
        *args,
        extra_env=None,
        **kwargs,
    ):
        self.logs_dir = logs_dir
        self.model_name = model_name
        self.logger = (logger or logging.getLogger("harbor")).getChild(__name__)
        self.mcp_servers = mcp_servers or []
        self.skills_dir = skills_dir
        self._extra_env = dict(extra_env or {})
        provider, slash, name = (model_name or "").rpartition("/")
        self._parsed_model_provider = provider if slash else None
        self._parsed_model_name = name or None

    @staticmethod
    def name():
        return "agent"

    def version(self):
        return None

    @classmethod
    def import_path(cls):
        return f"{cls.__module__}:{cls.__name__}"

    async def setup(self, environment):
        """Called once before `run`."""

    @abstractmethod
    async def run(self, instruction, environment, context):
        """Works on the task until it is done."""
