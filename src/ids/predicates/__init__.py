"""From conditions to membership: binding, three-valued truth, and the refinement into atoms."""
