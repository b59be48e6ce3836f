"""python3 -m evaluator_harbor [FILE[:CLASS]]: runs one agent on the task, through the broker."""

import asyncio
import importlib.util
import inspect
import logging
import os
import sys
from pathlib import Path

from evaluator_harbor.client import BrokerClient
from evaluator_harbor.context import AgentContext
from evaluator_harbor.environment import BrokerEnvironment

DEFAULT = "/agent/agent.py:Agent"
#: Names under which agents are told their model, the first that is set.
MODEL_VARIABLES = ("LLM_MODEL", "MODEL_NAME", "MODEL")


def load(where):
    file, _, name = where.partition(":")
    path = Path(file).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return getattr(module, name or "Agent")


def make(agent_class):
    """Calls the constructor with as much of what Harbor gives as it takes."""
    logs_dir = Path(os.environ.get("AGENT_LOG_DIR", "/logs/agent"))
    logs_dir.mkdir(parents=True, exist_ok=True)
    model = next((os.environ[name] for name in MODEL_VARIABLES if os.environ.get(name)), None)
    given = {"logs_dir": logs_dir, "model_name": model}
    takes = inspect.signature(agent_class).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in takes.values()):
        given = {name: value for name, value in given.items() if name in takes}
    return agent_class(**given)


async def finished(result):
    return await result if inspect.isawaitable(result) else result


async def main(where):
    agent = make(load(where))
    instruction = Path(os.environ["TASK_INSTRUCTION_FILE"]).read_text(encoding="utf-8")
    client = await BrokerClient.connect()
    try:
        environment = BrokerEnvironment(client)
        if hasattr(agent, "setup"):
            await finished(agent.setup(environment))
        await finished(agent.run(instruction, environment, AgentContext()))
    finally:
        await client.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else DEFAULT))
