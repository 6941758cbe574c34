# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A module that a job may preload: it brings parts of the standard library, and numpy or torch if
WITH_NUMPY or WITH_TORCH is set, and knows in which process it was imported."""

import asyncio
import concurrent.futures
import decimal
import gc
import json
import locale
import logging
import multiprocessing.pool
import os
import pickle
import random
import subprocess
import tempfile
import threading
import warnings

if "WITH_NUMPY" in os.environ:
    import numpy
else:
    numpy = None

if "WITH_TORCH" in os.environ:
    import torch
else:
    torch = None

IMPORTED_IN = os.getpid()
USED = (asyncio, concurrent.futures, decimal, json, locale, logging, multiprocessing.pool, pickle, random,
        subprocess, tempfile, threading, warnings, numpy, torch)


def tell():
    """Writes into a file of FORKED_OR_NOT, once a rank, whether this process is a fork of one that
    imported modules: this one, or others, which it has frozen."""
    path = os.path.join(os.environ["FORKED_OR_NOT"], os.environ["RANK"])
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return  # A process that the rank has started.
    forked = IMPORTED_IN != os.getpid() or gc.get_freeze_count() > 0
    os.write(number, b"yes" if forked else b"no")
    os.close(number)
