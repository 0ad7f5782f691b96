"""Load: floods, many streams at once, long histories, large repositories, long ledgers; what they may cost."""
