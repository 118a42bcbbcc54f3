// Made by .ci/event_types.py from labs/spec/events.py: change that, and run it with --write.
declare namespace RunEvents {
  /** All collectives of one operation, phase and group in a step of a rank. `payload_bytes` is the tensors handed over, `wire_bytes` what the rank sends for them around a ring; `seconds` adds up from each call until its result is there. */
  interface Collectives {
    operation: "all_reduce" | "all_gather" | "reduce_scatter" | "broadcast" | "all_to_all" | "send";
    phase: "forward" | "backward" | "optimizer";
    group: string;
    group_size: number;
    count: number;
    payload_bytes: number;
    wire_bytes: number;
    seconds: number;
  }
  /** The rank's collectives of one kind in a probed step, as `Collectives` has them. */
  interface CommunicationEvent {
    t: number;
    rank: number;
    step: number;
    operation: "all_reduce" | "all_gather" | "reduce_scatter" | "broadcast" | "all_to_all" | "send";
    phase: "forward" | "backward" | "optimizer";
    group: string;
    group_size: number;
    count: number;
    payload_bytes: number;
    wire_bytes: number;
    seconds: number;
    kind: "communication";
  }
  /** What a rank's spans of a step are made of, and what it held meanwhile. `layers` are the passes of single layers, `waits` from when to when it stood still for a collective, and `memory` the bytes of each component from each moment of `at` on. Times are seconds like `t`. `memory` is thinned: no change of `finest_bytes` or more is missing, and the largest total is in it. */
  interface DetailEvent {
    t: number;
    rank: number;
    step: number;
    start: number;
    end: number;
    layers: (LayerPass)[];
    waits: ((number)[])[];
    at: (number)[];
    memory: Record<string, (number)[]>;
    finest_bytes: number;
    kind: "detail";
  }
  /** Why a rank gave up. */
  interface Failure {
    cause: string;
    message: string;
  }
  /** Memory a collective filled or sent from, as one component: how much, and from when to when (seconds like `t`) of its step. With no end it outlived the step. */
  interface Held {
    component: "parameters" | "gradients" | "optimizer" | "activations" | "temporary";
    bytes: number;
    start: number;
    end: number | null;
  }
  /** Which host the rank sits on, of a run over several. */
  interface HostEvent {
    t: number;
    rank: number;
    host: string;
    kind: "host";
  }
  /** One layer's part of a pass, seconds like `t`. A forward inside of a backward is one that is computed again. */
  interface LayerPass {
    layer: number;
    what: "F" | "B";
    start: number;
    end: number;
  }
  /** A line for the run's log. */
  interface LogEvent {
    t: number;
    rank: number;
    stream: "stdout" | "stderr";
    line: string;
    kind: "log";
  }
  /** A number: of a strategy about itself after step `x`, or a point of series `name` in a program's `figure`. */
  interface MeasurementEvent {
    t: number;
    rank: number;
    name: string;
    x: number | null;
    y: number | null;
    unit: string;
    figure?: string | null;
    kind: "measurement";
  }
  /** What the rank held at a moment of a probed step. Of a `peak`, `during` is the phase it was reached in. */
  interface MemoryEvent {
    t: number;
    rank: number;
    step: number;
    at: "forward_start" | "backward_start" | "backward_end" | "step_end" | "activation_peak" | "peak";
    bytes: Record<string, number>;
    during?: string | null;
    kind: "memory";
  }
  /** What the operations of a rank's watched steps took themselves, in the middle, without the calls in between. */
  interface OperationSeconds {
    products: number;
    others: number;
    optimizer: number;
  }
  /** Where the run stands: rank 0 speaks for all, but any rank says that it `failed`, with why in `detail`. `doing` is what takes the time until the first step, in words. */
  interface PhaseEvent {
    t: number;
    rank: number;
    phase: "queued" | "starting" | "ready" | "running" | "checkpoint" | "finished" | "failed" | "cancelled";
    detail?: Failure | null;
    doing?: string | null;
    kind: "phase";
  }
  /** What the rank found, at the end. */
  interface ResultEvent {
    t: number;
    rank: number;
    summary: TrainingSummary | Record<string, unknown>;
    kind: "result";
  }
  /** What the rank did from `start` to `end` (seconds like `t`). A pass of a micro-batch through a stage, the optimizer's update, waiting (`idle`), or one collective or message (`communication`): this has no stage and no micro-batch, and says its operation, phase, group and bytes instead, and where memory is watched which of it was `held` for it. */
  interface SpanEvent {
    t: number;
    rank: number;
    step: number;
    what: "F" | "B" | "W" | "idle" | "optimizer" | "communication";
    stage: number | null;
    micro_batch: number | null;
    start: number;
    end: number;
    operation?: "all_reduce" | "all_gather" | "reduce_scatter" | "broadcast" | "all_to_all" | "send" | null;
    group?: string | null;
    payload_bytes?: number | null;
    phase?: "forward" | "backward" | "optimizer" | null;
    group_size?: number | null;
    wire_bytes?: number | null;
    held?: (Held)[] | null;
    kind: "span";
  }
  /** Seconds of a probed step by what rank 0 did. `communication` is how long anything was under way, beside the rest or not. */
  interface Split {
    forward: number;
    backward: number;
    optimizer: number;
    idle: number;
    communication: number;
  }
  /** A step of the run, from rank 0. `step` counts from 1; `loss` is the mean over the global batch in nats a token; `seconds` and `tokens_per_second` of a `probed` step contain the probes. */
  interface StepEvent {
    t: number;
    rank: number;
    step: number;
    loss: number | null;
    tokens: number;
    seconds: number;
    tokens_per_second: number;
    probed: boolean;
    split?: Split | null;
    kind: "step";
  }
  /** What a rank found of a whole training run. Null: its probe was off, or nobody knows it on this device. */
  interface TrainingSummary {
    world_size: number;
    backend: string;
    device: string;
    device_name: string;
    steps: number;
    first_loss: number | null;
    final_loss: number | null;
    tokens_per_second: number;
    model_flops_per_second: number;
    peak_flops_per_second: number | null;
    mfu: number | null;
    parameters: number;
    state_layout: string;
    model_state_bytes: Record<string, number> | null;
    peak_bytes: Record<string, number> | null;
    activation_bytes: number | null;
    payload_bytes_per_step: number | null;
    wire_bytes_per_step: number | null;
    collectives: (Collectives)[] | null;
    device_peak_bytes: number | null;
    operations?: OperationSeconds | null;
    waiting_seconds?: number | null;
  }
  type Any = PhaseEvent | HostEvent | StepEvent | MemoryEvent | CommunicationEvent | MeasurementEvent | SpanEvent | DetailEvent | LogEvent | ResultEvent;
}
