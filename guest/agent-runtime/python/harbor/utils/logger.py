import logging

logger = logging.getLogger("harbor")

__all__ = ["logger"]
