"""Time into deltas: which rows have arrived and which have expired, at every emit."""

from ids.window.emits import EmitPlan, plan_count, plan_time
from ids.window.ordering import Ordering, arrange

__all__ = ["EmitPlan", "Ordering", "arrange", "plan_count", "plan_time"]
