class Exchanges: pass
def replica_exchange(): pass
