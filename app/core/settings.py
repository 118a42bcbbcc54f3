"""Settings: environment variables `RANKZERO_*`, read once. `rankzero settings` lists them."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.core.limits import Limits

ROOT = Path(__file__).resolve().parents[2]


SHORTEST_TOKEN = 16
_NEAR = 0.8  # share of a name's letters from which on another was probably meant
_SCHEMES = {"database_url": ("postgresql", "postgres", "sqlite"), "redis_url": ("redis", "rediss", "unix")}
LONGEST_SOCKET_PATH = 100  # sun_path holds 104 to 108 bytes, depending on the system


def without_password(value: str) -> str:
    """A URL's password does not belong on a screen or in a pasted report."""
    return re.sub(r"(?<=://)([^:/@\s]*):[^@/\s]+@", r"\1:***@", value)


def embedded_socket(folder: Path) -> Path:
    """Where the embedded Redis has its socket: in `folder`, unless that path is too long for a socket."""
    wanted = folder / "redis.sock"
    if len(str(wanted).encode()) <= LONGEST_SOCKET_PATH:
        return wanted
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"rankzero-{digest}" / "redis.sock"


# Variables of this name that are no settings: what a run's ranks are handed, and what tests are asked for.
NO_SETTINGS = frozenset(
    f"RANKZERO_{name}"
    for name in (
        *("CHECKPOINTS", "GANG_RESTARTS", "HOST", "RUN_BYTES", "RUN_STARTED_AT", "SANDBOX", "SANDBOX_STDERR"),
        *("SNAPSHOTS", "TORCHRUN_PID"),
        *("ALL_ROWS", "BENCH_CARDS", "CHROMIUM", "TEST_DATABASE_URL", "TEST_SLURM"),
    )
)


class Settings(BaseSettings):
    """Everything an operator can set. The defaults are one person on one machine."""

    model_config = SettingsConfigDict(env_prefix="RANKZERO_", frozen=True)

    data: Path = Field(ROOT / "var", description="Folder of everything this install writes.")
    cards: Path = Field(ROOT / "cards", description="Folder of the content files.")
    bind: str = Field("127.0.0.1", description="Address the web server listens on. Loopback, unless in a container.")
    port: int = Field(8000, ge=1, le=65535, description="Port the web server listens on.")
    allowed_hosts: str = Field(
        "", description="Host names besides loopback that requests may name, separated by commas."
    )
    token: SecretStr = Field(
        SecretStr(""),
        description="What a request must carry unless it comes from the user the server runs as. Empty: a random one, "
        "kept in the file `token` of the data folder. `off`: none is asked for, behind an authentication of your own.",
        validate_default=True,
    )
    database_url: str = Field("", description="SQLAlchemy URL. Empty: SQLite in the data folder.")
    redis_url: str = Field(
        "", description="redis://, rediss:// or unix:// URL. Empty: an embedded server on a private socket."
    )
    devices: str = Field("auto", description="What `start` gives its worker: auto, cpu, or cuda:0,1.")
    give_way: int = Field(
        0,
        ge=0,
        le=19,
        description="How far web, control worker and beat of `start` give way to runs on the same cores, in steps of "
        "niceness. 0: not at all; 19: pages wait for a core that nobody wants.",
    )
    warm: bool = Field(
        True,
        description="Whether a worker keeps torch loaded between runs: a third of a gigabyte, and runs start at once.",
    )
    warm_idle_seconds: float = Field(900.0, ge=1, description="After how long without a run it gives that memory back.")
    runs_waiting: int = Field(Limits.runs_waiting, ge=1, description="How many runs of a learner may wait.")
    runs_at_once: int = Field(
        Limits.runs_at_once, ge=0, description="How many runs may be under way. 0: one for each worker."
    )
    runs_a_day: int = Field(
        Limits.runs_a_day, ge=0, description="How many runs a learner may start in 24 hours. 0: any number."
    )
    run_waits_seconds: float = Field(
        Limits.run_waits_seconds, ge=0, description="After how long a run expires that nobody took. 0: never."
    )
    run_steps: int = Field(Limits.run_steps, ge=1, le=500, description="The most steps of a run.")
    run_seconds: float = Field(Limits.run_seconds, ge=1, description="After how long a run is ended.")
    run_events: int = Field(Limits.run_events, ge=100, description="The most events that are kept of a run.")
    run_event_bytes: int = Field(
        Limits.run_event_bytes, ge=10_000, description="The most bytes of events and log lines that are read of a run."
    )
    run_log_lines: int = Field(Limits.run_log_lines, ge=1, description="The most log lines that are kept of a run.")
    keep_run_folders_days: float = Field(
        7.0, ge=0, description="For how long a run's folder with its spec and logs is kept."
    )
    keep_events_days: float = Field(
        0.0, ge=0, description="For how long the events of a run that has ended are kept. 0: for ever."
    )
    artifacts: str = Field(
        "",
        description="Where what ended runs leave is kept: a folder from the root, or such as s3://bucket/folder. "
        "Empty: nowhere but in the database and in their folders.",
    )
    keep_artifacts_days: float = Field(0.0, ge=0, description="For how long it is kept there. 0: for ever.")
    code_labs: Literal["sandbox", "unconfined", "off"] = Field(
        "sandbox",
        description="Where learners' programs run. sandbox: under bubblewrap, and not at all where there is none; "
        "unconfined: as this user, for a machine and programs of your own; off: nowhere.",
    )
    time_zone: str = Field("", description="IANA zone of the learner's day. Empty: the machine's.")
    grader_url: str = Field(
        "",
        description="OpenAI-compatible address (such as http://127.0.0.1:11434/v1) of a second grader of free answers. "
        "Empty: none, nothing leaves this machine.",
    )
    grader_model: str = Field("", max_length=100, description="The second grader's model.", validate_default=True)
    grader_key: SecretStr = Field(SecretStr(""), description="The second grader's key, sent to its address alone.")
    grader_timeout_seconds: float = Field(
        20.0, ge=0.1, le=120, description="How long an answer's page waits for the second grader at most."
    )
    environment: Literal["development", "production"] = Field(
        "production", description="production refuses to start on a broken content file; development serves the rest."
    )
    log_format: Literal["text", "json"] = Field("text", description="How log lines are written.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least severe line written."
    )

    @field_validator("token")
    @classmethod
    def _token_is_long(cls, token: SecretStr) -> SecretStr:
        if token.get_secret_value() not in ("", "off") and len(token.get_secret_value()) < SHORTEST_TOKEN:
            raise ValueError(f"a token has {SHORTEST_TOKEN} characters or more; `off` asks for none")
        return token

    @field_validator("database_url", "redis_url")
    @classmethod
    def _is_of_what_we_speak(cls, url: str, info: ValidationInfo) -> str:
        known = _SCHEMES[str(info.field_name)]
        if url and url.partition("://")[0].partition("+")[0] not in known:
            raise ValueError(f"accepted is what begins with {', '.join(f'{each}://' for each in known)}")
        return url

    @field_validator("time_zone")
    @classmethod
    def _zone_exists(cls, name: str) -> str:
        try:
            if name:
                ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{name!r} is no time zone; accepted are names such as Europe/Berlin") from None
        return name

    @field_validator("artifacts")
    @classmethod
    def _place_can_be_had(cls, place: str) -> str:
        if place := place.strip():
            from app.core.store import check_place  # noqa: PLC0415 - fsspec is not for every command

            check_place(place)
        return place

    @field_validator("grader_url")
    @classmethod
    def _address_can_be_asked(cls, url: str) -> str:
        url = url.strip().rstrip("/")
        try:
            parts = urlsplit(url)
            fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not parts.username
        except ValueError:
            fine = False
        if url and not fine:
            raise ValueError("this is no http or https address; the key has a setting of its own")
        return url

    @field_validator("grader_model")
    @classmethod
    def _model_is_named(cls, name: str, info: ValidationInfo) -> str:
        if info.data.get("grader_url") and not name.strip():
            raise ValueError("RANKZERO_GRADER_URL is set, so this must name the model to ask")
        return name.strip()

    @property
    def limits(self) -> Limits:
        """What runs may take."""
        return Limits(**{each.name: getattr(self, each.name) for each in fields(Limits)})

    @property
    def sqlalchemy_url(self) -> str:
        """The database URL in SQLAlchemy's dialect names; `postgres://` means psycopg 3 here."""
        if not self.database_url:
            return f"sqlite:///{self.data.resolve() / 'rankzero.sqlite3'}"
        for prefix in ("postgres://", "postgresql://"):
            if self.database_url.startswith(prefix):
                return "postgresql+psycopg://" + self.database_url.removeprefix(prefix)
        return self.database_url

    @property
    def redis(self) -> str:
        """The Redis to use: the named one, else the embedded server's private socket in the data folder."""
        return self.redis_url or f"unix://{embedded_socket(self.data.resolve() / 'redis')}"

    @property
    def address(self) -> str:
        """How this machine names the server: IPv6 in brackets, "every address" as loopback."""
        named = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.bind, self.bind)  # noqa: S104 - a key, nothing is bound
        return f"http://{f'[{named}]' if ':' in named else named}:{self.port}"

    @property
    def run_folder(self) -> Path:
        return self.data.resolve() / "runs"

    @property
    def cluster_file(self) -> Path:
        """What `rankzero cluster up` made."""
        return self.data.resolve() / "cluster.json"

    @property
    def log_folder(self) -> Path:
        return self.data.resolve() / "log"

    @property
    def host_names(self) -> frozenset[str]:
        """Names a request's Host may carry, without port."""
        extra = {name.strip().lower() for name in self.allowed_hosts.split(",") if name.strip()}
        return frozenset({"127.0.0.1", "localhost", "::1"} | extra)


def unknown_variables(names: Iterable[str]) -> list[str]:
    """A sentence for each of the environment's `names` that looks like a setting and is none: nobody reads it."""
    known = {f"RANKZERO_{name.upper()}" for name in Settings.model_fields}
    strange = sorted(name for name in names if name.upper().startswith("RANKZERO_"))
    found = []
    for name in strange:
        if name.upper() not in known | NO_SETTINGS:
            near = [each for each in known if name.upper().startswith(f"{each}_")]
            near = near or get_close_matches(name.upper(), known, 1, _NEAR)
            meant = f" Did you mean {near[0]}?" if near else ""
            found.append(f"{name} is no setting, so it does nothing.{meant} `rankzero settings` lists them.")
    return found


@cache
def settings() -> Settings:
    """The process's settings."""
    return Settings()
