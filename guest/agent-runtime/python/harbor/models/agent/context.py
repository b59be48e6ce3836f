from evaluator_harbor.context import AgentContext

__all__ = ["AgentContext"]
