"""What an agent reports of itself. Nothing of it is judged, and nothing of it leaves the sandbox."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class AgentContext:
    n_input_tokens: int | None = None
    n_cache_tokens: int | None = None
    n_output_tokens: int | None = None
    cost_usd: float | None = None
    model_usage: dict[str, Any] | None = None
    rollout_details: list[Any] | None = None
    metadata: dict[str, Any] | None = None

    def is_empty(self):
        return all(value is None for value in asdict(self).values())

    def model_dump(self):
        return asdict(self)
