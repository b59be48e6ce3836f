from evaluator_harbor.agent import BaseAgent

__all__ = ["BaseAgent"]
