"""Columns of data: group-by, joins, membership and numbering of keys. docs/data.md.

>>> import numpy as np
>>> from tensorhash import data
>>> data.group_by(np.array([7, 3, 7])).agg(sum=[1, 2, 4])
{'key': array([7, 3]), 'sum': array([5, 2])}
"""

from tensorhash.data._group_by import GroupBy, Grouping, group_by
from tensorhash.data._join import (
    Factorized,
    JoinedRows,
    JoinIndex,
    Matches,
    factorize,
    index_of,
    isin,
    join,
)

__all__ = [
    "Factorized",
    "GroupBy",
    "Grouping",
    "JoinIndex",
    "JoinedRows",
    "Matches",
    "factorize",
    "group_by",
    "index_of",
    "isin",
    "join",
]
