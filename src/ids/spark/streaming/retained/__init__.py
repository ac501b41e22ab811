"""The rows inside a stream's window, kept by pane for questions that nobody has registered.

    checkpoint/retained/script.sql             what the stream runs
    checkpoint/retained/00000041/0.parquet     rows that batch 41 has accepted
    checkpoint/ids/00000041/retained.json      which files hold the window after batch 41

The list of files is part of a snapshot, so a batch that is tried again ends with the same rows.
Whoever asks takes the list of the last snapshot, in this process or in another, while the stream
runs or after it.
"""

__all__: list[str] = []
