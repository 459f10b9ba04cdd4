"""The start of a program that loads a file with little memory and reports the outcome."""

# Allows 400 MB more address space than is in use, then loads a file and prints the outcome.
LIMITED = """
import resource, sys
import numpy as np
import tensorhash

tensorhash.set_num_threads(1)
tensorhash.HashMap.from_items(np.arange(10), np.arange(10)).get([1])
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 400_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

def attempt(load):
    try:
        table = load()
        table.validate()
        print("loaded", table.memory_usage()["total"])
    except ValueError as error:
        print("refused", error)
"""
