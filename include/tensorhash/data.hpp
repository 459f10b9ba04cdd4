// Everything for columns of data: group-by and joins.
#pragma once

#include "tensorhash/data/group_by.hpp"
#include "tensorhash/data/join.hpp"
