def run(suite, only): pass
def table(rows): return ""
