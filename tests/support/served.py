"""The web server alone, in this process: real pages over a real port and database, without the start of a product.

For tests that submit no run and wait for no beat: the catalogue is read already, so a server is up in a second or two
where a product needs twenty of processor time.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from app.core.connections import TimedProtocol
from app.core.db import open_database
from app.core.settings import ROOT, Settings
from app.main import create_app
from tests.support.product import Site, free_port

UP_SECONDS = 120.0  # on a busy machine


@contextlib.contextmanager
def served(template: Path, data: Path, cards: Path = ROOT / "cards") -> Iterator[Site]:
    """A site in the folder `data` over a copy of the database in the file `template`; gone afterwards."""
    shutil.copy(template, data / "rankzero.sqlite3")
    database = open_database(f"sqlite:///{data}/rankzero.sqlite3")
    nowhere = f"unix://{data}/nothing.sock"  # nobody is nudged: there is no worker
    settings = Settings(token="off", data=data, cards=cards, redis_url=nowhere, log_level="error")
    port = free_port()
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(settings, database),
            http=TimedProtocol,
            proxy_headers=False,
            port=port,
            access_log=False,
            log_config=None,
            timeout_graceful_shutdown=2,
            server_header=False,
        )
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + UP_SECONDS
        while not server.started:
            assert thread.is_alive(), "the web server did not come up"
            assert time.monotonic() < deadline, "the web server did not come up in time"
            time.sleep(0.02)
        yield Site(f"http://127.0.0.1:{port}", data)
    finally:
        server.should_exit = True
        thread.join(30)
        database.engine.dispose()
