from harbor.models.agent.context import AgentContext

__all__ = ["AgentContext"]
