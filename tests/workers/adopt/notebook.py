# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Runs a notebook whose cell trains with accelerate's notebook_launcher, and prints what its cells
show. With --interrupt its last cell waits, and is interrupted as by a person's click; with --until FILE
it waits for a file. --port PORT is that of notebook_launcher."""

import os
import signal
import sys
import threading
import time

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

DEFINE = """
import os, time

def train(word):
    import torch
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True)
    sum = accelerator.reduce(torch.ones(1) * (accelerator.process_index + 1), "sum").item()
    print(f"rank {accelerator.process_index} of {accelerator.num_processes}, {word}, sum {sum}, by "
          f"{'hlaunch' if 'HLAUNCH_JOB_ID' in os.environ else 'torch'}", flush=True)
    if word == "wait":
        time.sleep(600)
    while word.startswith("/") and not os.path.exists(word):
        time.sleep(0.1)
"""
LAUNCH = """
from accelerate import notebook_launcher
notebook_launcher(train, ("WORD",), num_processes=2, use_port="PORT")
print("the cell goes on")
"""


def shown(notebook):
    return "".join(str(output.get("text", output.get("ename", ""))) for cell in notebook.cells
                   for output in cell.outputs)


def interrupt_once_it_waits(client, notebook):
    while "rank 1 of 2" not in shown(notebook):
        time.sleep(0.2)
    kernel = client.km.provisioner.process.pid  # Its own session; this is what Jupyter does.
    os.killpg(os.getpgid(kernel), signal.SIGINT)


def main(word, port):
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(text)
                      for text in (DEFINE, LAUNCH.replace("WORD", word).replace("PORT", port))]
    client = NotebookClient(notebook, timeout=600, kernel_name="python3")
    if word == "wait":
        threading.Thread(target=interrupt_once_it_waits, args=(client, notebook), daemon=True).start()
    try:
        client.execute()
    except CellExecutionError as error:
        print("CELL", error.ename)
    for line in shown(notebook).splitlines():
        print("CELL", line)


if __name__ == "__main__":
    value = lambda name: sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None
    main("wait" if "--interrupt" in sys.argv else value("--until") or "train", value("--port") or "29500")
