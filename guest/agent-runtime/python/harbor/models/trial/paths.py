from evaluator_harbor.paths import EnvironmentPaths

__all__ = ["EnvironmentPaths"]
