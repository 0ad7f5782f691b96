"""One turn of an agent's life: perceive, choose, plan, act, judge, learn."""
