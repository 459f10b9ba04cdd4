"""A bounded table in plain Python: a dict, searched in full for the entry to evict."""


class Oracle:
    """The rules, row by row: an entry is [index, value, score, use]."""

    def __init__(self, capacity, eviction):
        self.capacity, self.eviction = capacity, eviction
        self.entries, self.free, self.fresh = {}, [], 0
        self.clock = self.uses = 0

    def rank(self, entry):
        _, _, score, use = entry
        return (use,) if self.eviction == "lru" else (score, use)

    def add(self, key, value, score, gone):
        self.entries[key] = [None, value, score, self.uses]
        if len(self.entries) > self.capacity:
            lowest = min(self.entries, key=lambda one: self.rank(self.entries[one]))
            index, *rest, _ = self.entries.pop(lowest)
            gone.append((lowest, *rest))
            if lowest == key:
                return False
            self.free.append(index)
        if self.free:
            self.entries[key][0] = self.free.pop()
        else:
            self.entries[key][0] = self.fresh
            self.fresh += 1
        return True

    def join(self, keys, values, reduce, scores=None):
        self.clock += 1
        added, gone = [], []
        for row, (key, value) in enumerate(zip(keys, values, strict=True)):
            score = self.clock if scores is None else scores[row]
            if key not in self.entries:
                added.append(self.add(key, value, score, gone))
            else:
                entry = self.entries[key]
                entry[1] = {"first": entry[1], "last": value, "sum": entry[1] + value}[reduce]
                entry[2:] = score, self.uses
                added.append(False)
            self.uses += 1
        return [self.entries.get(key, [-1])[0] for key in keys], added, gone

    def touch(self, keys, scores=None):
        self.clock += 1
        for row, key in enumerate(keys):
            if key in self.entries:
                entry = self.entries[key]
                entry[3] = self.uses
                if scores is not None:
                    entry[2] = scores[row]
                elif self.eviction == "lru":
                    entry[2] = self.clock
            self.uses += 1

    def erase(self, keys):
        self.clock += 1
        for key in keys:
            if key in self.entries:
                self.free.append(self.entries.pop(key)[0])
