"""The interface of Harbor, for agents that were written against it; see evaluator_harbor."""

from evaluator_harbor.agent import BaseAgent
from evaluator_harbor.context import AgentContext
from evaluator_harbor.environment import BaseEnvironment, ExecResult

__all__ = ["AgentContext", "BaseAgent", "BaseEnvironment", "ExecResult"]
