# Data work: revenue per shop with the shop's city beside it.
import numpy as np

import tensorhash as th

rng = np.random.default_rng(0)
shop, price = rng.integers(0, 1000, 10**6), rng.random(10**6)
known, city = np.arange(0, 1000, 2), np.arange(500) % 10
report = th.group_by(shop).agg(revenue=(price, "sum"), sales="count")
rows = th.join(report["key"], known)
cities = th.group_by(city[rows.right]).agg(sum=report["revenue"][rows.left])
print(f"{len(report['key'])} shops, {len(rows.left)} known, in {len(cities['key'])} cities")
