"""Time into deltas: which rows have arrived and which have expired, at every emit."""

from ids.window.emits import CountEmits, EmitPlan, Emits, chosen, plan_time
from ids.window.ordering import Ordering, arrange

__all__ = ["CountEmits", "EmitPlan", "Emits", "Ordering", "arrange", "chosen", "plan_time"]
