from evaluator_harbor.environment import BaseEnvironment, ExecResult

__all__ = ["BaseEnvironment", "ExecResult"]
