"""Whatever DASEC changes is put back, however DASEC ends: journal, restore, keeper, verify."""
